//! What a door asks of pictures that stand elsewhere, and that an answer names.

use tokio_util::task::AbortOnDropHandle;

use super::Engine;
use crate::documents;
use crate::files::InlineImage;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{SessionId, UserId};
use crate::protocol::phrase::PhraseCode;
use crate::protocol::powers::PowerKind;
use crate::root::OpenSession;
use crate::tools::net::guard::Guard;
use crate::tools::web_fetch::picture;

impl Engine {
    /// The image that Navi makes of a picture elsewhere, for somebody who takes part in the
    /// session and asked to see it. Who may not reach the owner's network does not by this either.
    ///
    /// # Errors
    /// `session_not_found`; `file_not_found` where it may not be reached, is not there or is too
    /// large; `invalid_image` where it is none.
    pub async fn remote_image(
        &self,
        user: UserId,
        session: SessionId,
        guard: Guard,
        address: String,
    ) -> Result<InlineImage, NaviError> {
        self.find(OpenSession::as_participant(user, session))
            .await?;
        let powers = self.powers_of(user).await?;
        let guard = match powers.has(PowerKind::LocalNetwork) {
            true => guard,
            false => guard.public(),
        };
        let fetching = self
            .runtime
            .spawn(async move { picture(&guard, &address).await });
        // Whoever asked may have gone: then nobody needs it.
        let fetched = AbortOnDropHandle::new(fetching).await.map_err(|error| {
            tracing::error!(%session, %error, "a picture from elsewhere could not be fetched");
            NaviError::said(ErrorCode::Internal, PhraseCode::SomethingFailed)
        })?;
        let bytes = fetched.map_err(|error| NaviError::new(ErrorCode::FileNotFound, error.0))?;
        let image = documents::image(bytes).await.map_err(|problem| {
            let message = format!("what stands there cannot be shown: {problem}");
            NaviError::new(ErrorCode::InvalidImage, message)
        })?;
        Ok(InlineImage {
            media_type: image.media_type,
            bytes: image.bytes,
        })
    }
}
