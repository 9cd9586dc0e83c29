//! One answer on its way out, at its pace.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::Protocol;
use super::ledger::Ledger;
use super::wire::{self, End, Tokens};
use crate::script::{Rate, Script};

/// How many tokens stand in one write of a joined answer: about 10 KB of events.
const JOINED: u32 = 64;

/// About as many bytes of a prompt are a token.
const BYTES_A_TOKEN: usize = 4;

#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<'a> {
    pub(super) protocol: Protocol,
    pub(super) script: Script,
    /// How many calls of this script there were before.
    pub(super) number: usize,
    pub(super) prompt_bytes: usize,
    pub(super) ledger: &'a Ledger,
}

impl Answer<'_> {
    /// Sends it whole.
    ///
    /// # Errors
    /// The client has gone away.
    pub(super) async fn send(self, stream: &mut TcpStream) -> io::Result<()> {
        let head = wire::head(self.protocol);
        let calls_tool = self.number < self.script.calls as usize;
        if calls_tool {
            let id = format!("bench-{}-{}", self.script.id, self.number);
            let call = wire::tool_call(self.protocol, &id, self.script.tool);
            self.begin();
            stream.write_all((head + &call).as_bytes()).await?;
        } else {
            stream.write_all(head.as_bytes()).await?;
            self.send_tokens(stream).await?;
        }
        let end = wire::end(
            self.protocol,
            End {
                calls_tool,
                prompt_tokens: self.prompt_bytes / BYTES_A_TOKEN,
                tokens: self.script.tokens,
            },
        );
        self.ledger.end(self.script.id, self.number);
        stream.write_all(end.as_bytes()).await
    }

    async fn send_tokens(self, stream: &mut TcpStream) -> io::Result<()> {
        self.begin();
        match self.script.rate {
            Rate::PerSecond(rate) => self.send_paced(stream, rate).await,
            Rate::Single => self.send_in_writes_of(stream, 1).await,
            Rate::Joined => self.send_in_writes_of(stream, JOINED).await,
        }
    }

    /// A token that is late is followed by the next one at its own time: the whole answer takes
    /// as long as it should.
    async fn send_paced(self, stream: &mut TcpStream, rate: u32) -> io::Result<()> {
        let mut tokens = Tokens::new(self.protocol, 1);
        let begun = Instant::now();
        for number in 0..self.script.tokens {
            let due = Duration::from_secs_f64(f64::from(number) / f64::from(rate));
            tokio::time::sleep_until(begun + due).await;
            stream.write_all(tokens.stamped()).await?;
        }
        Ok(())
    }

    async fn send_in_writes_of(self, stream: &mut TcpStream, events: u32) -> io::Result<()> {
        let mut left = self.script.tokens;
        let mut tokens = Tokens::new(self.protocol, events.min(left) as usize);
        while left > 0 {
            if left < events {
                tokens = Tokens::new(self.protocol, left as usize);
            }
            stream.write_all(tokens.stamped()).await?;
            left = left.saturating_sub(events);
        }
        Ok(())
    }

    fn begin(self) {
        self.ledger.begin(self.script.id, self.number);
    }
}
