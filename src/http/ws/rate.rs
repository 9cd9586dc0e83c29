//! How fast a client may send frames.

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use nonzero_ext::nonzero;

pub(super) type FrameRate = DefaultDirectRateLimiter;

/// Of one client.
pub(super) fn frame_rate() -> FrameRate {
    RateLimiter::direct(Quota::per_second(nonzero!(50_u32)).allow_burst(nonzero!(200_u32)))
}
