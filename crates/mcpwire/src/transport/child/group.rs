//! A child's process group: the program and what it has started itself.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;
use tokio::time::{sleep, timeout};

use super::Closing;

/// How often a group is looked at that has lost its leader: nobody tells when its last member ends.
const LOOK: Duration = Duration::from_millis(10);

/// Is killed when it is dropped before it was ended.
///
/// The number of a group is not given to another one while it has members. When it has none any more, the kernel gives
/// it away only after all other numbers; we signal at most a moment after the leader was reaped.
#[derive(Debug)]
pub(super) struct Group(Option<Pid>);

impl Group {
    /// The group that this child leads.
    pub(super) fn of(child: &Child) -> Group {
        Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    /// Asks more and more firmly; gives whether asking nicely was not enough. The child is reaped then, unless even
    /// SIGKILL did not end it in time.
    pub(super) async fn end(&mut self, child: &mut Child, closing: Closing) -> bool {
        if self.ended(child, closing.stdin).await {
            self.0 = None;
            return false;
        }
        self.signal(Signal::TERM);
        if self.ended(child, closing.term).await {
            self.0 = None;
            return true;
        }
        self.kill();
        let _ = timeout(closing.kill, child.wait()).await;
        true
    }

    /// Ends what is left, at once.
    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.0 = None;
    }

    async fn ended(&self, child: &mut Child, limit: Duration) -> bool {
        let ended = async {
            let _ = child.wait().await;
            while self.lives() {
                sleep(LOOK).await;
            }
        };
        timeout(limit, ended).await.is_ok()
    }

    fn lives(&self) -> bool {
        self.0.is_some_and(|pid| test_kill_process_group(pid) != Err(Errno::SRCH))
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // It may be gone already.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
