//! What slows people down: wrong tries to come in, by the account and by the address, and keys made
//! without end, by their maker.

use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::UserId;
use nonzero_ext::nonzero;

type Limiter<K> = RateLimiter<K, HashMapStateStore<K>, DefaultClock>;

/// Tries at one account in a row, and then one in six seconds.
const BY_ACCOUNT: NonZeroU32 = nonzero!(10_u32);
/// Keys that one person makes in a row, and then one a minute: each stands in the record.
const KEYS: NonZeroU32 = nonzero!(60_u32);
/// A household may share an address.
const BY_ADDRESS: NonZeroU32 = nonzero!(30_u32);
/// With so many accounts or addresses, those are forgotten that made no try for long.
const MANY: usize = 1_024;
/// With so many that did, nobody else has a try.
const MOST: usize = 16_384;

const SIGN_INS: &str = "tries to sign in";

/// See the module.
#[derive(Debug)]
pub(super) struct Tries {
    accounts: Limiter<String>,
    addresses: Limiter<IpAddr>,
    makers: Limiter<UserId>,
}

impl Default for Tries {
    fn default() -> Self {
        Self {
            accounts: RateLimiter::hashmap(Quota::per_minute(BY_ACCOUNT)),
            addresses: RateLimiter::hashmap(Quota::per_minute(BY_ADDRESS)),
            makers: RateLimiter::hashmap(Quota::per_hour(KEYS)),
        }
    }
}

impl Tries {
    /// Counts a try at an account.
    ///
    /// # Errors
    /// `rate_limited`: there were too many.
    pub(super) fn count(&self, account: &str, address: Option<IpAddr>) -> Result<(), NaviError> {
        self.count_address(address)?;
        pass(&self.accounts, &account.to_owned(), SIGN_INS)
    }

    /// Counts a token, or other things that open the door, of somebody's making.
    ///
    /// # Errors
    /// As [`Tries::count`].
    pub(super) fn count_key(&self, maker: UserId) -> Result<(), NaviError> {
        pass(&self.makers, &maker, "keys made in a row")
    }

    /// Counts a try at what is nobody's yet.
    ///
    /// # Errors
    /// As [`Tries::count`].
    pub(super) fn count_address(&self, address: Option<IpAddr>) -> Result<(), NaviError> {
        match address {
            Some(address) => pass(&self.addresses, &network(address), SIGN_INS),
            None => Ok(()),
        }
    }
}

fn pass<K: Clone + Eq + Hash>(limiter: &Limiter<K>, key: &K, what: &str) -> Result<(), NaviError> {
    if limiter.len() >= MANY {
        limiter.retain_recent();
    }
    if limiter.len() >= MOST {
        return Err(too_many(what, Duration::from_secs(60)));
    }
    limiter
        .check_key(key)
        .map_err(|until| too_many(what, until.wait_time_from(DefaultClock::default().now())))
}

/// The answer to whoever made so many, with how long until the next is heard.
pub(super) fn too_many(what: &str, wait: Duration) -> NaviError {
    let seconds = (wait + Duration::from_millis(999)).as_secs().max(1);
    NaviError::new(
        ErrorCode::RateLimited,
        format!("too many {what}; try again in {seconds} s"),
    )
    .after(wait)
}

/// Who has one IPv6 address has its whole network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let upper = address.to_bits() & !u128::from(u64::MAX);
            Ipv6Addr::from_bits(upper).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn tries_at_one_account_are_few_from_wherever_they_come() {
        let tries = Tries::default();
        for n in 0..10 {
            tries.count("anna", address(n)).unwrap();
        }
        let refused = tries.count("anna", address(99)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::RateLimited);
        let wait = refused.wait.unwrap();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(6));
        tries.count("olha", address(99)).unwrap();
    }

    #[test]
    fn keys_are_made_at_a_bounded_pace_by_each() {
        let tries = Tries::default();
        let (ann, bob) = (UserId::new(), UserId::new());
        for _ in 0..60 {
            tries.count_key(ann).unwrap();
        }
        let refused = tries.count_key(ann).unwrap_err();
        assert_eq!(refused.code, ErrorCode::RateLimited);
        tries.count_key(bob).unwrap();
    }

    #[test]
    fn tries_from_one_network_are_few_at_whatever_account() {
        let tries = Tries::default();
        for n in 0..30_u16 {
            let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, n);
            tries.count(&format!("a{n}"), Some(address.into())).unwrap();
        }
        let same = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 9, 9, 9, 9);
        tries.count("b", Some(same.into())).unwrap_err();
        let other = Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, 0);
        tries.count("b", Some(other.into())).unwrap();
    }
}
