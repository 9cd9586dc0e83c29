//! The database: whether it opens, is up to date and is whole.

use navi_actors::protocol::phrase::{CheckName, Phrase, PhraseCode};
use navi_actors::store::{Location, Store, StoreConfig};

use super::Check;

const NAME: CheckName = CheckName::Database;

/// Looks without changing anything.
pub(crate) async fn check(config: &StoreConfig) -> Check {
    let place = match &config.location {
        Location::Sqlite(path) if !path.exists() => {
            let place = [("place", path.display().to_string())];
            return Check::fine(NAME, Phrase::new(PhraseCode::MadeAtStart, place));
        }
        Location::Sqlite(path) => path.display().to_string(),
        Location::Postgres(_) => "PostgreSQL".to_owned(),
    };
    let store = match Store::open_as_it_is(config).await {
        Ok(store) => store,
        Err(error) => {
            return Check::broken(
                NAME,
                Phrase::plain(error.to_string()),
                PhraseCode::CorrectAndLook,
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
            let params = [("place", place.to_owned()), ("error", error.to_string())];
            return Check::broken(
                NAME,
                Phrase::new(PhraseCode::DatabaseFails, params),
                PhraseCode::LookAtDatabase,
            );
        }
    };
    if !damage.is_empty() {
        let params = [("place", place.to_owned()), ("damage", damage.join("; "))];
        return Check::broken(
            NAME,
            Phrase::new(PhraseCode::DatabaseDamaged, params),
            PhraseCode::PutBackup,
        );
    }
    let pending = migrations.iter().filter(|step| !step.applied).count();
    if pending > 0 {
        let params = [("place", place.to_owned()), ("n", pending.to_string())];
        return Check::fine(NAME, Phrase::new(PhraseCode::DatabaseAhead, params));
    }
    Check::fine(NAME, Phrase::plain(place))
}
