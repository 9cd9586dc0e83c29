//! [`JanitorActor`]: what is past its time goes.
//!
//! Started by the engine, stopped by its shutdown. It owns when the next sweep is and where it
//! goes on. It must not know runs or live sessions: the store says what is past its time, and a
//! use that comes between is seen there. When it dies it is rebuilt; what it did not get to is
//! found again by the next sweep.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use actix::{Actor, ActorFutureExt, AsyncContext, Context, WrapFuture};
use chrono::{DateTime, TimeDelta, Utc};

use super::SessionFiles;
use super::shelf::{Shelf, remove_file};
use crate::engine::TRASH;
use crate::homes::{self, Homes};
use crate::people::DAY;
use crate::protocol::ids::{FileId, SessionId, UserId};
use crate::services::now;
use crate::store::{LogLimits, Store, StoreError};
use crate::supervision::Guard;
use crate::tools::filesystem::changes_dir;
use crate::tools::registry::Registry;
use crate::tools::terminal::remove_all;
use crate::tools::toolbox::Toolbox;

/// How long after a sweep the next one begins.
const EVERY: Duration = Duration::from_secs(60);
/// How long a deleted session can be had back.
const UNDO: TimeDelta = TimeDelta::minutes(10);

/// How long a session of one answer can be asked for that answer again, by a program whose
/// connection was cut.
const EPHEMERAL_KEPT: TimeDelta = TimeDelta::hours(1);
/// How long a token that expired stands in the list of its person.
const EXPIRED_TOKENS_KEPT: TimeDelta = TimeDelta::days(30);
/// How long the list of what was allowed goes back.
const CONSENT_LOG_KEPT: TimeDelta = TimeDelta::days(90);
/// How often one sweep writes to shorten logs, at most: what is left waits for the next.
const LOG_STEPS: usize = 100;
/// Files that one sweep takes at most, and sessions that it looks at.
const FILES_PER_SWEEP: u64 = 200;
const SESSIONS_PER_SWEEP: usize = 50;
/// Sessions that it clears away: a program may leave one a request.
const PURGES_PER_SWEEP: usize = 2_000;
/// A file without a row may be on its way to it: that never takes as long as this.
const ORPHAN_AFTER: Duration = Duration::from_secs(3600);

/// See the module.
#[derive(Debug)]
pub struct JanitorActor {
    sweeper: Sweeper,
    /// Ends with the actor: nobody is to be told that it went in order.
    _guard: Guard,
}

/// What one sweep works with.
#[derive(Clone, Debug)]
pub(super) struct Sweeper {
    store: Store,
    files: SessionFiles,
    homes: Homes,
    /// When this process began: whatever was on its way in before is lost.
    started: SystemTime,
    log: LogLimits,
    /// What keeps something for sessions beyond a call.
    toolbox: Toolbox,
    places: Places,
}

/// Where the next sweep goes on.
#[derive(Clone, Debug, Default)]
struct Places {
    /// The last of the shelf's sessions that was looked at.
    shelf: String,
    /// The last of the sessions whose log was.
    log: Option<SessionId>,
}

impl JanitorActor {
    /// A janitor of these files, and of what is left of sessions in the homes of their people.
    #[must_use]
    pub fn new(
        files: SessionFiles,
        started: SystemTime,
        log: LogLimits,
        toolbox: Toolbox,
        guard: Guard,
    ) -> Self {
        Self {
            sweeper: Sweeper::new(files, started, log, toolbox),
            _guard: guard,
        }
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        let sweeper = self.sweeper.clone();
        ctx.spawn(sweeper.sweep().into_actor(self).map(|sweeper, actor, ctx| {
            actor.sweeper = sweeper;
            ctx.run_later(EVERY, Self::sweep);
        }));
    }
}

impl Actor for JanitorActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.sweep(ctx);
    }
}

impl Sweeper {
    pub(super) fn new(
        files: SessionFiles,
        started: SystemTime,
        log: LogLimits,
        toolbox: Toolbox,
    ) -> Self {
        Self {
            store: files.store.clone(),
            homes: files.homes.clone(),
            files,
            started,
            log,
            toolbox,
            places: Places::default(),
        }
    }

    /// One sweep. Gives back what the next one is done with.
    pub(super) async fn sweep(mut self) -> Self {
        fail::fail_point!("janitor::sweep", |_| self.clone());
        if let Err(error) = self.delete_ephemeral().await {
            tracing::warn!(%error, "sessions of one answer could not be cleared away");
        }
        if let Err(error) = self.purge_deleted().await {
            tracing::warn!(%error, "deleted sessions could not be cleared away");
        }
        // After their sessions: who has none is gone.
        if let Err(error) = self.clear_away_people().await {
            tracing::warn!(%error, "what people left could not be cleared away");
        }
        if let Err(error) = self.store.forget_used_tokens(now() - DAY).await {
            tracing::warn!(%error, "the use of earlier days could not be forgotten");
        }
        if let Err(error) = self.store.purge_web_logins(now()).await {
            tracing::warn!(%error, "old logins could not be cleared away");
        }
        if let Err(error) = self.store.purge_consent_log(now() - CONSENT_LOG_KEPT).await {
            tracing::warn!(%error, "the list of what was allowed could not be shortened");
        }
        if let Err(error) = self.expire().await {
            tracing::warn!(%error, "old files could not be cleared away");
        }
        if let Err(error) = self.shorten_logs().await {
            tracing::warn!(%error, "old logs could not be cleared away");
        }
        self.clear_incoming().await;
        if let Err(error) = self.clear_orphans().await {
            tracing::warn!(%error, "files that belong to nobody could not be cleared away");
        }
        self
    }

    /// What was told long ago, and what models were sent.
    async fn shorten_logs(&mut self) -> Result<(), StoreError> {
        let before = self
            .log
            .keep
            .and_then(|keep| now().checked_sub_signed(keep));
        let of_sweep = SESSIONS_PER_SWEEP as u64;
        let found = self.store.sessions_after(self.places.log, of_sweep).await?;
        let is_last = found.len() < SESSIONS_PER_SWEEP;
        let mut steps = 0_usize;
        for id in found {
            match self.shorten_log(id, before, &mut steps).await {
                Err(error @ StoreError::Unavailable(_)) => return Err(error),
                // What is wrong with one of them does not keep the others.
                Err(error) => tracing::warn!(%error, session = %id, "a log cannot be shortened"),
                Ok(()) => {}
            }
            if steps == LOG_STEPS {
                // The next sweep goes on with this session.
                return Ok(());
            }
            self.places.log = Some(id);
        }
        if is_last {
            self.places.log = None;
        }
        Ok(())
    }

    async fn shorten_log(
        &self,
        id: SessionId,
        before: Option<DateTime<Utc>>,
        steps: &mut usize,
    ) -> Result<(), StoreError> {
        while let Some(before) = before
            && *steps < LOG_STEPS
            && self.store.shorten_log(id, before).await?
        {
            *steps += 1;
        }
        while *steps < LOG_STEPS && self.store.forget_calls(id, before, self.log.calls).await? {
            *steps += 1;
        }
        Ok(())
    }

    /// Sessions of one answer, once nobody asks for it again.
    async fn delete_ephemeral(&self) -> Result<(), StoreError> {
        let now = now();
        let gone = self
            .store
            .delete_ephemeral(now - EPHEMERAL_KEPT, now - UNDO);
        let gone = gone.await?;
        self.tell_tools(move |tools| gone.into_iter().for_each(|id| tools.session_closed(id)))
            .await;
        Ok(())
    }

    async fn tell_tools(&self, tell: impl FnOnce(&Registry) + Send + 'static) {
        let tools = self.toolbox.now();
        // It may wait for the disk.
        let told = tokio::task::spawn_blocking(move || tell(&tools)).await;
        told.unwrap_or_else(|error| tracing::error!(%error, "a tool went down"));
    }

    /// People who were removed, with their homes, when the last of their sessions is gone;
    /// invitations that expired, and what is too old for the record.
    async fn clear_away_people(&self) -> Result<(), StoreError> {
        let mut gone = Vec::new();
        for person in self.store.left_behind().await? {
            // While there is a home there is its person: who they were is not forgotten before.
            if self.remove_home(person).await {
                gone.push(person);
            }
        }
        let forgotten = gone.clone();
        self.tell_tools(move |tools| gone.into_iter().for_each(|id| tools.person_removed(id)))
            .await;
        self.store.forget_people(&forgotten).await?;
        self.store.purge_invitations(now()).await?;
        self.store.purge_tokens(now() - EXPIRED_TOKENS_KEPT).await?;
        self.store.purge_session_links(now()).await?;
        self.store.purge_record(now() - self.log.record).await
    }

    /// Sessions that were deleted and can be had back no longer, and those of people who were
    /// removed.
    async fn purge_deleted(&self) -> Result<(), StoreError> {
        self.store.delete_sessions_of_removed(now() - UNDO).await?;
        let mut gone = self.store.deleted_before(now() - UNDO).await?;
        gone.truncate(PURGES_PER_SWEEP);
        // Nobody says whose they were once they are gone.
        for (session, owner) in self.store.owners_of(&gone).await? {
            match self.store.purge_session(session, now() - DAY).await {
                // Somebody had it back just now.
                Err(StoreError::SessionNotFound) => continue,
                purged => purged?,
            }
            // Nobody may have told them: another process removed its person, or the one that
            // deleted it ended right after.
            self.tell_tools(move |tools| tools.session_closed(session))
                .await;
            remove_workspace(&self.homes.of(owner), session).await;
            remove_dir(&self.files.shelf.of_session(session)).await;
        }
        Ok(())
    }

    /// Removes what is left of somebody's home. Gives back whether nothing is.
    async fn remove_home(&self, person: UserId) -> bool {
        let homes = self.homes.clone();
        let removed = tokio::task::spawn_blocking(move || homes.remove(person)).await;
        let removed = removed.unwrap_or_else(|error| Err(io::Error::other(error)));
        removed
            .inspect_err(|error| {
                tracing::error!(%error, %person, "the files of a person who was removed cannot be");
            })
            .is_ok()
    }

    /// Files that nobody used for as long as they are kept.
    async fn expire(&self) -> Result<(), StoreError> {
        let keep = TimeDelta::from_std(self.files.limits.keep).unwrap_or(TimeDelta::MAX);
        let Some(unused_since) = now().checked_sub_signed(keep) else {
            return Ok(());
        };
        let expired = self.store.files_unused_since(unused_since, FILES_PER_SWEEP);
        for file in expired.await? {
            // Whoever used it meanwhile keeps it.
            if self
                .store
                .retire_file(file.file_id, unused_since, now())
                .await?
            {
                self.files
                    .remove(file.session_id, file.file_id, &file.path)
                    .await?;
            }
        }
        Ok(())
    }

    /// What was on its way in when an earlier process ended.
    async fn clear_incoming(&self) {
        for (path, changed) in entries(&self.files.shelf.incoming_dir()).await {
            if changed < self.started {
                remove_file(&path).await;
            }
        }
    }

    /// Files on the shelf that the store does not have: of sessions that are gone, and of
    /// uploads that a crash cut off between the disk and the store.
    async fn clear_orphans(&mut self) -> Result<(), StoreError> {
        self.clear_trash().await?;
        let mut names: Vec<String> = entries(self.files.shelf.root())
            .await
            .into_iter()
            .filter_map(|(path, _)| Some(path.file_name()?.to_str()?.to_owned()))
            .filter(|name| *name > self.places.shelf)
            .collect();
        names.sort_unstable();
        names.truncate(SESSIONS_PER_SWEEP);
        self.places.shelf = match names.last() {
            Some(last) if names.len() == SESSIONS_PER_SWEEP => last.clone(),
            _ => String::new(),
        };
        let sessions: Vec<SessionId> = names.iter().filter_map(|name| name.parse().ok()).collect();
        let known = self.store.sessions_known(&sessions).await?;
        for session in sessions {
            let dir = self.files.shelf.of_session(session);
            if known.contains(&session) {
                self.clear_session(session).await?;
            } else {
                remove_dir(&dir).await;
            }
        }
        Ok(())
    }

    /// Workspaces of sessions that are gone, and that could not be removed with them.
    async fn clear_trash(&self) -> Result<(), StoreError> {
        // Where there were people before they had homes, some may lie in the directory itself.
        let mut places = vec![self.homes.dir().to_owned()];
        let people = self.store.holders_of_files().await?.into_iter();
        places.extend(people.map(|person| self.homes.of(person)));
        for home in places {
            let sessions: Vec<SessionId> = entries(&home.join(TRASH))
                .await
                .into_iter()
                .filter_map(|(path, _)| path.file_name()?.to_str()?.parse().ok())
                .take(SESSIONS_PER_SWEEP)
                .collect();
            if sessions.is_empty() {
                continue;
            }
            let known = self.store.sessions_known(&sessions).await?;
            for session in sessions {
                if !known.contains(&session) {
                    remove_workspace(&home, session).await;
                }
            }
        }
        Ok(())
    }

    async fn clear_session(&self, session: SessionId) -> Result<(), StoreError> {
        let old_before = SystemTime::now()
            .checked_sub(ORPHAN_AFTER)
            .unwrap_or(SystemTime::UNIX_EPOCH);
        let dir = self.files.shelf.of_session(session);
        let mut old: Vec<(PathBuf, FileId)> = Vec::new();
        for (path, changed) in entries(&dir).await {
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some(file) = name.and_then(Shelf::file_of)
                && changed < old_before
            {
                old.push((path, file));
            }
        }
        let mut ids: Vec<FileId> = old.iter().map(|(_, file)| *file).collect();
        ids.sort_unstable();
        ids.dedup();
        let there = self.store.files_there(&ids).await?;
        for (path, file) in old {
            if !there.contains(&file) {
                remove_file(&path).await;
            }
        }
        Ok(())
    }
}

/// What a directory holds, with when each was changed last. One that is not there holds nothing.
async fn entries(dir: &Path) -> Vec<(PathBuf, SystemTime)> {
    let mut found = Vec::new();
    let Ok(mut reading) = tokio::fs::read_dir(dir).await else {
        return found;
    };
    while let Ok(Some(entry)) = reading.next_entry().await {
        if let Ok(changed) = entry.metadata().await.and_then(|data| data.modified()) {
            found.push((entry.path(), changed));
        }
    }
    found
}

/// What a deleted session's workspace was, and what it takes to undo changes in it.
async fn remove_workspace(home: &Path, session: SessionId) {
    let name = session.to_string();
    remove_dir(&changes_dir(&home.join(&name))).await;
    remove_dir(&homes::trash_in(home, &name)).await;
    // One of one answer was never put into the trash.
    remove_dir(&home.join(name)).await;
}

async fn remove_dir(dir: &Path) {
    let dir = dir.to_owned();
    let removed = tokio::task::spawn_blocking(move || remove_all(&dir)).await;
    if let Err(error) = removed.unwrap_or_else(|error| Err(io::Error::other(error))) {
        tracing::error!(%error, "a deleted session's files could not be removed");
    }
}
