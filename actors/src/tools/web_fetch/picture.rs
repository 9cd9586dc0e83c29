//! A picture that stands elsewhere, for a person who asked to see it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Method, Request, Url};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use super::fetch::{MAX_REDIRECTS, redirect, same_site};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::UserId;
use crate::protocol::phrase::PhraseCode;
use crate::tools::ToolResult;
use crate::tools::net::guard::{Guard, read_body};
use crate::tools::net::url::{authority, parse};

/// The largest picture that is fetched.
pub const MAX_BYTES: usize = 10 * 1024 * 1024;
/// For all of one, redirects among it.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// As many are fetched at once, whoever asks.
const AT_ONCE: usize = 8;
/// And for one person.
const AT_ONCE_FOR_ONE: usize = 2;
/// Who waits longer for a place is told so; the rest of the time is for the picture.
const WAIT_LIMIT: Duration = Duration::from_secs(15);

static PLACES: LazyLock<Places> = LazyLock::new(Places::default);

/// Where pictures are fetched: one person's wait for each other, and others' not for them.
#[derive(Debug)]
struct Places {
    all: Semaphore,
    /// Of those who have one or wait for one.
    own: Mutex<HashMap<UserId, Arc<Semaphore>>>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            all: Semaphore::new(AT_ONCE),
            own: Mutex::default(),
        }
    }
}

impl Places {
    /// A place for one picture of this person, until it is dropped.
    ///
    /// # Errors
    /// `rate_limited`: there is none for long.
    async fn place(
        &self,
        person: UserId,
    ) -> Result<(OwnedSemaphorePermit, SemaphorePermit<'_>), NaviError> {
        let own = self.own_of(person);
        // Neither is ever closed.
        let both = async {
            Some((
                own.acquire_owned().await.ok()?,
                self.all.acquire().await.ok()?,
            ))
        };
        let place = timeout(WAIT_LIMIT, both).await.ok().flatten();
        place.ok_or_else(|| NaviError::said(ErrorCode::RateLimited, PhraseCode::PicturesWait))
    }

    fn own_of(&self, person: UserId) -> Arc<Semaphore> {
        let mut own = self.own.lock();
        own.retain(|_, places| Arc::strong_count(places) > 1);
        let places = own.entry(person);
        Arc::clone(places.or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE_FOR_ONE))))
    }
}

/// What stands at the address, which the caller has yet to find to be a picture. The guard looks
/// at each address on the way; on another site than that which the person named, nothing but
/// the public network is reached.
///
/// # Errors
/// `rate_limited`: others of this person are being fetched. Within: it is no address of the web, may
/// not be reached, takes too long, or is too large.
pub async fn picture(
    person: UserId,
    guard: &Guard,
    address: &str,
) -> Result<ToolResult<Vec<u8>>, NaviError> {
    let url = match parse(address) {
        Ok(url) => url,
        Err(error) => return Ok(Err(error)),
    };
    let (host, until) = (authority(&url), Instant::now() + TIME_LIMIT);
    let _place = PLACES.place(person).await?;
    let left = until.saturating_duration_since(Instant::now());
    let fetched = timeout(left, follow(guard.clone(), url)).await;
    Ok(fetched.unwrap_or_else(|_| {
        let seconds = left.as_secs();
        Err(refusal!("{host} did not send it within {seconds} s"))
    }))
}

async fn follow(mut guard: Guard, mut url: Url) -> ToolResult<Vec<u8>> {
    for _ in 0..=MAX_REDIRECTS {
        let mut request = Request::new(Method::GET, url.clone());
        let wanted = HeaderValue::from_static("image/png, image/jpeg, image/gif, image/webp");
        request.headers_mut().insert(ACCEPT, wanted);
        let response = guard.send(request).await?;
        if let Some(next) = redirect(&url, &response)? {
            if !same_site(&url, &next) {
                guard = guard.public();
            }
            url = next;
            continue;
        }
        let (host, status) = (authority(&url), response.status());
        refuse_if!(!status.is_success(), "{host} answered {status}");
        return read_body(response, MAX_BYTES).await;
    }
    refuse!(
        "{} redirects more than {MAX_REDIRECTS} times; the address leads nowhere",
        authority(&url)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_persons_pictures_leave_places_to_others() {
        let places = Places::default();
        let (anna, borys) = (UserId::new(), UserId::new());
        let hers = [
            places.place(anna).await.unwrap(),
            places.place(anna).await.unwrap(),
        ];
        let his = places.place(borys).await.unwrap();
        // Her third waits for hers alone, and not for ever.
        let refused = places.place(anna).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::RateLimited);
        drop(hers);
        let third = places.place(anna).await.unwrap();
        drop((his, third));
        // Who has none is forgotten.
        let _others = places.place(UserId::new()).await.unwrap();
        assert_eq!(places.own.lock().len(), 1);
    }
}
