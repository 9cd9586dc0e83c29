//! The session list as it changes, over whatever happens to the connection.

use navi_actors::hub::HubFrame;

use super::line::{Line, Told};
use super::{Client, ClientError};

const PATH: &str = "/ws/sessions";

/// See the module. After a connection was lost the whole list is told again.
pub(crate) struct Watch(Line);

impl Watch {
    pub(super) fn new(client: Client) -> Self {
        Self(Line::new(client))
    }

    /// What is told next. May be dropped at any time, and asked again.
    ///
    /// # Errors
    /// The service refuses, or has been away for a minute.
    pub(crate) async fn next(&mut self) -> Result<HubFrame, ClientError> {
        loop {
            if !self.0.is_open() {
                self.0.open(PATH).await?;
                continue;
            }
            if let Some(Told::Known(frame)) = self.0.next::<HubFrame, HubFrame>().await? {
                return Ok(frame);
            }
        }
    }
}
