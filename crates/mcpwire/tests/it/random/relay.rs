//! A relay between a client and a server on TCP that cuts connections when told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

pub struct Relay {
    /// Where it listens.
    pub address: String,
    cuts: watch::Sender<u64>,
    /// How many more bytes of the server pass before a connection is cut.
    left: Arc<AtomicI64>,
    accepting: AbortHandle,
}

impl Relay {
    pub async fn start(server: String) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound address").to_string();
        let cuts = watch::Sender::new(0);
        let left = Arc::new(AtomicI64::new(i64::MAX));
        let (cut, budget) = (cuts.subscribe(), Arc::clone(&left));
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server.clone(), cut.clone(), Arc::clone(&budget)));
            }
        });
        Relay { address, cuts, left, accepting: accepting.abort_handle() }
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Cuts the connection that carries the byte after so many more.
    pub fn cut_after(&self, bytes: u32) {
        self.left.store(i64::from(bytes), Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn carry(mut client: TcpStream, server: String, mut cut: watch::Receiver<u64>, left: Arc<AtomicI64>) {
    cut.borrow_and_update();
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let upward = async {
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
        let _ = to_server.shutdown().await;
        // The server may still answer.
        std::future::pending::<()>().await;
    };
    let downward = async {
        let mut buffer = [0; 8192];
        while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
            let allowed = left.fetch_sub(read as i64, Ordering::Relaxed);
            if allowed < read as i64 {
                left.store(i64::MAX, Ordering::Relaxed);
                let _ = to_client.write_all(&buffer[..allowed.max(0) as usize]).await;
                return;
            }
            if to_client.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = upward => {}
        () = downward => {}
        _ = cut.changed() => {}
    }
}
