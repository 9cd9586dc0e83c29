//! The database: whether it opens, is up to date and is whole.

use navi_actors::store::{Location, Store, StoreConfig};

use super::Check;

const NAME: &str = "database";

/// Looks without changing anything.
pub(crate) async fn check(config: &StoreConfig) -> Check {
    let place = match &config.location {
        Location::Sqlite(path) if !path.exists() => {
            return Check::fine(
                NAME,
                format!("{} (made at the first start)", path.display()),
            );
        }
        Location::Sqlite(path) => path.display().to_string(),
        Location::Postgres(_) => "PostgreSQL".to_owned(),
    };
    let store = match Store::open_as_it_is(config).await {
        Ok(store) => store,
        Err(error) => {
            return Check::broken(
                NAME,
                error.to_string(),
                "correct it, then run `navi doctor` again",
            );
        }
    };
    let found = look(&store, &place).await;
    // Closing can fail only where looking failed too.
    let _ = store.close().await;
    found
}

async fn look(store: &Store, place: &str) -> Check {
    let (migrations, damage) = match (store.migrations().await, store.damage().await) {
        (Ok(migrations), Ok(damage)) => (migrations, damage),
        (Err(error), _) | (_, Err(error)) => {
            return Check::broken(
                NAME,
                format!("{place}: {error}"),
                "see that the database runs and that nothing else holds it",
            );
        }
    };
    if !damage.is_empty() {
        return Check::broken(
            NAME,
            format!("{place} is damaged: {}", damage.join("; ")),
            "stop Navi and put a backup in its place",
        );
    }
    let pending = migrations.iter().filter(|step| !step.applied).count();
    if pending > 0 {
        return Check::fine(
            NAME,
            format!("{place} ({pending} steps of the schema follow at the next start)"),
        );
    }
    Check::fine(NAME, place)
}
