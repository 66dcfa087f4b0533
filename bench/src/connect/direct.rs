//! No bridge at all: the driver as an HTTP client of the server, for what the network itself costs.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

const SILENCE: Duration = Duration::from_secs(15);

pub struct Direct {
    runtime: Runtime,
    upstream: Upstream,
    under_way: JoinSet<Result<Bytes>>,
}

#[derive(Clone)]
struct Upstream {
    url: Uri,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Direct {
    pub fn open(url: &str) -> Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let upstream = Upstream { url: url.parse()?, client: Client::builder(TokioExecutor::new()).build(connector) };
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, upstream, under_way: JoinSet::new() })
    }

    /// One message there and its answer back.
    pub fn exchange(&self, message: Vec<u8>) -> Result<Bytes> {
        self.runtime.block_on(self.upstream.post(message))
    }

    /// Puts one message under way; `answer` brings what comes back.
    pub fn start(&mut self, message: Vec<u8>) {
        let upstream = self.upstream.clone();
        self.under_way.spawn_on(async move { upstream.post(message).await }, self.runtime.handle());
    }

    /// The next answer to arrive.
    pub fn answer(&mut self) -> Result<Bytes> {
        let next = self.runtime.block_on(self.under_way.join_next());
        next.context("nothing is under way")??
    }
}

impl Upstream {
    async fn post(&self, message: Vec<u8>) -> Result<Bytes> {
        let request = Request::post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(Full::from(message))?;
        let exchange = async {
            let response = self.client.request(request).await?;
            let status = response.status();
            if !status.is_success() {
                bail!("the server answered {status}");
            }
            Ok(response.into_body().collect().await?.to_bytes())
        };
        tokio::time::timeout(SILENCE, exchange).await.context("no answer from the server")?
    }
}
