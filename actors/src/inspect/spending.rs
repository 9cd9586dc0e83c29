//! What runs used, and what that cost by the price table as it is now.

use std::ops::Range;
use std::sync::Arc;

use chrono::{DateTime, Days, Local, NaiveDate, NaiveTime, TimeZone as _, Utc};

use super::Inspector;
use crate::domain::prices::{PriceTable, Used};
use crate::protocol::ids::{RunId, SessionId, UserId};
use crate::protocol::inspect::{RunDetails, RunInfo, RunSpending, Spending};
use crate::store::StoreError;

impl Inspector {
    /// A run of the user's with its model calls, what each of them kept of the one before, the runs
    /// that it started, and what was spent around it. None where the user has no such run.
    ///
    /// # Errors
    /// What the store says.
    pub async fn run(&self, user: UserId, run_id: RunId) -> Result<Option<RunDetails>, StoreError> {
        let Some(mut details) = self.store.run_details(user, run_id).await? else {
            return Ok(None);
        };
        details.spent = Some(self.around(user, &details.run).await?);
        let prices = self.table().await;
        self.add_prefixes(&mut details, &prices).await?;
        Ok(Some(details))
    }

    /// What all runs of a session spent.
    ///
    /// # Errors
    /// What the store says.
    pub async fn session_spending(&self, session: SessionId) -> Result<Spending, StoreError> {
        let used = self.store.used_by_session(session).await?;
        let prices = self.table().await;
        Ok(spent(&used, &prices))
    }

    /// What all of the user's runs spent that began today.
    ///
    /// # Errors
    /// What the store says.
    pub async fn spending_today(&self, user: UserId) -> Result<Spending, StoreError> {
        let used = self.store.used_within(user, day_of(Utc::now())).await?;
        let prices = self.table().await;
        Ok(spent(&used, &prices))
    }

    /// Adds to runs of a session what they cost, with those under them.
    ///
    /// # Errors
    /// What the store says.
    pub async fn add_costs(
        &self,
        session: SessionId,
        runs: &mut [RunInfo],
    ) -> Result<(), StoreError> {
        let prices = self.table().await;
        let Some(oldest) = runs.last().filter(|_| !prices.is_empty()) else {
            return Ok(());
        };
        let used = self.store.used_by_runs(session, oldest.started_at).await?;
        for run in runs {
            run.cost = used.get(&run.run_id).and_then(|used| prices.cost(used));
        }
        Ok(())
    }

    async fn around(&self, user: UserId, run: &RunInfo) -> Result<RunSpending, StoreError> {
        let of_run = self.store.used_by_run(run.run_id).await?;
        let of_session = self.store.used_by_session(run.session_id).await?;
        let day = day_of(run.started_at);
        let of_day = self.store.used_within(user, day).await?;
        let prices = self.table().await;
        Ok(RunSpending {
            run: spent(&of_run, &prices),
            session: spent(&of_session, &prices),
            day: spent(&of_day, &prices),
        })
    }

    async fn table(&self) -> Arc<PriceTable> {
        let prices = Arc::clone(&self.prices);
        // It fails where the service goes down: then nobody needs the answer.
        let table = tokio::task::spawn_blocking(move || prices.now());
        table.await.unwrap_or_default()
    }
}

fn spent(used: &[Used], prices: &PriceTable) -> Spending {
    Spending {
        prompt_tokens: used.iter().map(|used| used.prompt_tokens).sum(),
        completion_tokens: used.iter().map(|used| used.completion_tokens).sum(),
        cost: prices.cost(used),
    }
}

/// The day of a moment by this machine's clock.
fn day_of(moment: DateTime<Utc>) -> Range<DateTime<Utc>> {
    let day = moment.with_timezone(&Local).date_naive();
    let next = day.checked_add_days(Days::new(1)).unwrap_or(day);
    begin_of(day)..begin_of(next)
}

fn begin_of(day: NaiveDate) -> DateTime<Utc> {
    let midnight = day.and_time(NaiveTime::MIN);
    // Where clocks are put forward at midnight there is none.
    let begin = Local.from_local_datetime(&midnight).earliest();
    begin.map_or_else(|| midnight.and_utc(), |begin| begin.to_utc())
}
