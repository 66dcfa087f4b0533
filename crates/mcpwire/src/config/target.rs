//! From a configured server to a target that can be opened: values are resolved here, and not before.

use anyhow::{Context, Result, bail};
use http::{HeaderMap, HeaderName, HeaderValue};
use mcpwire_proto::Policy;
use mcpwire_proto::conversation::Config;

use super::{Program, Remote, Resolver, Server, Transport};
use crate::target::Target;
use crate::transport::child;
use crate::transport::http::client;

impl Server {
    /// The server as a target, with its values resolved and limited by its policy. Commands that print values are run now.
    ///
    /// What is a matter of the machine is left at its default: a guard for the child, a proxy.
    pub async fn target(&self, resolver: &Resolver) -> Result<Target> {
        let target = match &self.transport {
            Transport::Stdio(program) => Target::Child(self.child(program, resolver).await?),
            // Configurations are often wrong about which of the two it is, so both are tried.
            Transport::Http(remote) | Transport::Sse(remote) => {
                Target::Http(Box::new(self.http(remote, resolver).await?))
            }
        };
        Ok(target.limited(self.policy()))
    }

    /// Which of its tools are offered.
    pub fn policy(&self) -> Policy {
        Policy::new(&self.include, &self.exclude)
    }

    /// How a conversation with the server behaves.
    pub fn conversation(&self, target: &Target) -> Result<Config> {
        let mut config = target.config()?;
        config.relay.timeout = self.timeout;
        // Signs of progress count for the call they belong to.
        config.relay.attribute = self.timeout.is_some() && !config.sorted;
        config.protocol = self.protocol;
        Ok(config)
    }

    async fn child(&self, program: &Program, resolver: &Resolver) -> Result<child::Options> {
        if !program.cwd.is_dir() {
            bail!("Server \"{}\": \"cwd\" is no directory", self.name);
        }
        let args = program.args.iter().map(|arg| arg.reveal().to_owned());
        let mut options = child::Options::new(program.command.as_ref(), args);
        options.name.clone_from(&self.name);
        options.cwd = Some(program.cwd.clone());
        for (name, value) in &program.env {
            if let Some(value) = resolver.resolve(value).await {
                options.env.push((name.into(), value.reveal().into()));
            }
        }
        Ok(options)
    }

    async fn http(&self, remote: &Remote, resolver: &Resolver) -> Result<client::Options> {
        let mut headers = HeaderMap::new();
        for (name, value) in &remote.headers {
            let Some(value) = resolver.resolve(value).await else { continue };
            let fault = || format!("Server \"{}\": header {name:?} cannot be sent", self.name);
            let name = HeaderName::try_from(name.as_str()).with_context(fault)?;
            let mut value = HeaderValue::from_str(value.reveal()).with_context(fault)?;
            value.set_sensitive(true);
            // Names differ in case only where one is meant to replace the other.
            headers.insert(name, value);
        }
        let shown_as = Some(remote.outline.clone());
        Ok(client::Options { headers, shown_as, ..client::Options::new(remote.url.clone()) })
    }
}
