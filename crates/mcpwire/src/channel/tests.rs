//! Tests of the channel.

use std::pin::pin;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::timeout;

use super::*;

async fn within<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(20), future).await.expect("in time")
}

#[tokio::test]
async fn items_come_in_order_and_then_the_end() {
    let (tx, mut rx) = channel(4);
    let again = tx.clone();
    for number in 0..4 {
        tx.try_send(number).unwrap();
    }
    assert!(matches!(tx.try_send(4), Err(TrySendError::Full(4))));
    drop((tx, again));
    for number in 0..4 {
        assert_eq!(rx.recv().await, Some(number));
    }
    assert_eq!(rx.recv().await, None);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

#[tokio::test]
async fn a_reader_that_sleeps_is_woken_by_an_item_and_by_the_end() {
    let (tx, mut rx) = channel(1);
    let reader = tokio::spawn(async move { (rx.recv().await, rx.recv().await) });
    yield_now().await;
    tx.send(1).await.unwrap();
    yield_now().await;
    drop(tx);
    assert_eq!(within(reader).await.unwrap(), (Some(1), None));
}

#[tokio::test]
async fn who_waits_for_room_gets_it_in_turn() {
    let (tx, mut rx) = channel(1);
    tx.try_send(0).unwrap();
    let mut waiting = Vec::new();
    for number in 1..=5 {
        let tx = tx.clone();
        waiting.push(tokio::spawn(async move { tx.send(number).await }));
        yield_now().await;
    }
    // One that gives up leaves its turn to the others.
    waiting.remove(1).abort();
    yield_now().await;
    for number in [0, 1, 3, 4, 5] {
        assert_eq!(within(rx.recv()).await, Some(number));
        assert!(matches!(tx.try_send(9), Err(TrySendError::Full(9))) || number == 5, "nobody is overtaken");
        yield_now().await;
    }
    assert_eq!(rx.try_recv(), Ok(9), "there is room when nobody waits");
}

#[tokio::test]
async fn one_that_was_called_and_gives_up_passes_its_turn_on() {
    let (tx, mut rx) = channel(1);
    tx.try_send(0).unwrap();
    let (other, next) = (tx.clone(), tx.clone());
    let mut gives_up = Box::pin(other.reserve());
    assert!(poll_fn(|cx| Poll::Ready(gives_up.as_mut().poll(cx).is_pending())).await);
    let waits = tokio::spawn(async move { next.send(2).await });
    yield_now().await;
    assert_eq!(rx.try_recv(), Ok(0));
    drop(gives_up);
    within(waits).await.unwrap().unwrap();
    assert_eq!(rx.try_recv(), Ok(2));
    assert_eq!(tx.capacity(), tx.max_capacity());
}

#[tokio::test]
async fn a_place_that_is_not_used_is_given_back() {
    let (tx, mut rx) = channel(2);
    let permit = tx.reserve().await.unwrap();
    let owned = tx.clone().reserve_owned().await.unwrap();
    assert!(matches!(tx.try_reserve(), Err(TrySendError::Full(()))));
    drop(permit);
    owned.send(1);
    assert_eq!(tx.capacity(), 1);
    drop(tx.clone().reserve_owned().await.unwrap());
    assert_eq!(tx.capacity(), 1);
    assert_eq!(rx.recv().await, Some(1));
    assert_eq!(tx.capacity(), 2);
}

#[tokio::test]
async fn everybody_learns_that_the_receiver_is_gone() {
    let (tx, rx) = channel(1);
    tx.try_send(1).unwrap();
    let (a, b) = (tx.clone(), tx.clone());
    let sends = tokio::spawn(async move { a.send(2).await });
    let watches = tokio::spawn(async move { b.closed().await });
    yield_now().await;
    for _ in 0..1000 {
        let mut given_up = pin!(tx.closed());
        assert!(poll_fn(|cx| Poll::Ready(given_up.as_mut().poll(cx).is_pending())).await);
    }
    assert_eq!(tx.0.lock().watchers.len(), 1, "those who watch no more are forgotten");
    drop(rx);
    assert_eq!(within(sends).await.unwrap(), Err(SendError(2)));
    within(watches).await.unwrap();
    assert!(tx.is_closed());
    assert!(matches!(tx.try_send(3), Err(TrySendError::Closed(3))));
}

#[tokio::test]
async fn items_that_are_left_go_with_the_receiver() {
    let (tx, rx) = channel(1);
    let item = Arc::new(());
    tx.try_send(Arc::clone(&item)).unwrap();
    drop(rx);
    assert_eq!(Arc::strong_count(&item), 1);
}

/// More than the channel holds, and than the runtime lets a task take at once, from and to threads.
#[tokio::test]
async fn threads_and_tasks_lose_nothing() {
    const EACH: u64 = 20_000;
    let (tx, mut rx) = channel(8);
    let (back, mut returned) = channel(8);
    for _ in 0..2 {
        let (tx, threads) = (tx.clone(), tx.clone());
        thread::spawn(move || (1..=EACH).for_each(|number| threads.blocking_send(number).unwrap()));
        tokio::spawn(async move {
            for number in 1..=EACH {
                tx.send(number).await.unwrap();
            }
        });
    }
    drop(tx);
    let relay = tokio::spawn(async move {
        while let Some(number) = rx.recv().await {
            back.send(number).await.unwrap();
        }
    });
    let sum = thread::spawn(move || {
        let mut sum = 0;
        while let Some(number) = returned.blocking_recv() {
            sum += number;
        }
        sum
    });
    within(relay).await.unwrap();
    assert_eq!(sum.join().unwrap(), 4 * EACH * (EACH + 1) / 2);
}

#[tokio::test]
async fn memory_that_a_burst_took_is_given_back() {
    let (tx, mut rx) = channel(1000);
    (0..1000).for_each(|number| tx.try_send(number).unwrap());
    while rx.try_recv().is_ok() {}
    assert!(timeout(Duration::ZERO, rx.recv()).await.is_err());
    assert!(rx.0.lock().items.capacity() <= KEPT);
}

#[tokio::test]
async fn what_is_taken_on_the_spot_needs_no_place_for_long() {
    let (tx, mut rx) = channel(1);
    let taken = Arc::new(Mutex::new(Vec::new()));
    let even = Arc::clone(&taken);
    rx.open_shortcut(Box::new(move |number: u32| {
        if number % 2 == 1 {
            return Some(number);
        }
        even.lock().unwrap().push(number);
        None
    }));
    for number in [2, 4, 6] {
        tx.try_send(number).unwrap();
    }
    assert_eq!(tx.capacity(), 1);
    tx.send(1).await.unwrap();
    assert!(matches!(tx.try_send(3), Err(TrySendError::Full(3))));
    assert!(matches!(tx.try_send(8), Err(TrySendError::Full(8))), "nothing goes where there is no place");
    assert_eq!(rx.recv().await, Some(1));
    tx.reserve().await.unwrap().send(8);
    tx.clone().reserve_owned().await.unwrap().send(10);
    assert_eq!(tx.capacity(), 1);
    assert_eq!(*taken.lock().unwrap(), [2, 4, 6, 8, 10]);
}
