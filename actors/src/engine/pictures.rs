//! What a door asks of pictures that stand elsewhere, and that an answer names.

use tokio_util::task::AbortOnDropHandle;

use super::Engine;
use crate::documents;
use crate::files::InlineImage;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{SessionId, UserId};
use crate::protocol::phrase::{Phrase, PhraseCode};
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
    /// large; `invalid_image` where it is none; `rate_limited` while they wait for others of theirs.
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
            .spawn(async move { picture(user, &guard, &address).await });
        // Whoever asked may have gone: then nobody needs it.
        let fetched = AbortOnDropHandle::new(fetching).await.map_err(|error| {
            tracing::error!(%session, %error, "a picture from elsewhere could not be fetched");
            NaviError::said(ErrorCode::Internal, PhraseCode::SomethingFailed)
        })?;
        let bytes =
            fetched?.map_err(|error| not_shown(ErrorCode::FileNotFound, Phrase::plain(error.0)))?;
        let image = documents::image(bytes).await;
        let image =
            image.map_err(|problem| not_shown(ErrorCode::InvalidImage, problem.phrase()))?;
        Ok(InlineImage {
            media_type: image.media_type,
            bytes: image.bytes,
        })
    }
}

/// Whoever asked for a picture sees in its place why there is none.
fn not_shown(code: ErrorCode, problem: Phrase) -> NaviError {
    let phrase = Phrase::from(PhraseCode::ImageElsewhere);
    NaviError::said(code, phrase.with("problem", problem))
}
