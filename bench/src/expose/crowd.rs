//! Many clients on one thread: each sends its next call when its last is answered.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;

use super::client::{Client, SILENCE};

pub struct Crowd {
    address: SocketAddr,
    clients: Vec<Client>,
}

impl Crowd {
    pub fn new(address: SocketAddr) -> Self {
        Self { address, clients: Vec::new() }
    }

    /// Opens sessions, each with a call in it, until there are this many.
    pub fn grow(&mut self, size: usize) -> Result<()> {
        while self.clients.len() < size {
            let number = self.clients.len();
            let outcome = Client::open(self.address, number).and_then(|mut client| {
                client.call_and_wait()?;
                Ok(client)
            });
            self.clients.push(outcome.with_context(|| format!("session {}", number + 1))?);
        }
        Ok(())
    }

    pub fn answered(&self) -> u64 {
        self.clients.iter().map(Client::answered).sum()
    }

    /// The first client's calls, one after the other, and how long each took.
    pub fn sequential(&mut self, calls: usize) -> Result<Vec<Duration>> {
        let client = self.clients.first_mut().context("nobody is here")?;
        (0..calls).map(|_| client.call_and_wait()).collect()
    }

    /// The first `clients` make `calls` calls in all; how long all of them took.
    pub fn flood(&mut self, clients: usize, calls: usize) -> Result<Duration> {
        let clients = &mut self.clients[..clients];
        let queue = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, client) in clients.iter().enumerate() {
            epoll::add(&queue, client, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
        }
        let begin = Instant::now();
        let (mut sent, mut answered) = (0, 0);
        for client in clients.iter_mut().take(calls) {
            client.call()?;
            sent += 1;
        }
        let mut events = Vec::with_capacity(clients.len());
        while answered < calls {
            events.clear();
            if epoll::wait(&queue, spare_capacity(&mut events), Some(&SILENCE))? == 0 {
                bail!("no answer for {} s: {answered} came, {} are owed", SILENCE.tv_sec, sent - answered);
            }
            for event in &events {
                let number = event.data.u64() as usize;
                let client = &mut clients[number];
                if client.answer().with_context(|| format!("client {number}"))?.is_some() {
                    answered += 1;
                    if sent < calls {
                        client.call()?;
                        sent += 1;
                    }
                }
            }
        }
        Ok(begin.elapsed())
    }
}
