//! An editor's project: what lies in it, and whether it may be read unasked.

use std::path::{Component, Path, PathBuf};

use directories::BaseDirs;
use navi_actors::protocol::tool::Effect;
use tokio::fs::{canonicalize, symlink_metadata};

/// What reading in the project is, for whoever is asked about it. Who opened a project lets it be
/// read. One that has their home in it was not meant: an editor without a project says such.
pub(super) async fn reading(project: &Path) -> Effect {
    let home = BaseDirs::new().map(|dirs| dirs.home_dir().to_owned());
    let (Ok(project), Some(home)) = (canonicalize(project).await, home) else {
        return Effect::Host;
    };
    let home = canonicalize(&home).await.unwrap_or(home);
    if home.starts_with(project) {
        Effect::Host
    } else {
        Effect::Read
    }
}

/// A path of the project. What lies beside it is not lent, by no link either, whatever the editor
/// would do.
pub(super) async fn inside(project: &Path, path: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    let climbs = path.components().any(|it| it == Component::ParentDir);
    let is_inside = path.is_absolute() && !climbs && path.starts_with(project);
    if is_inside && leads_inside(project, &path).await {
        return Ok(path);
    }
    Err(format!(
        "{} is not an absolute path inside the project {}",
        path.display(),
        project.display()
    ))
}

async fn leads_inside(project: &Path, path: &Path) -> bool {
    let Ok(project) = canonicalize(project).await else {
        // It is not on this machine: each call is asked about.
        return true;
    };
    for place in path.ancestors() {
        match canonicalize(place).await {
            Ok(place) => return place.starts_with(project),
            // A link that leads nowhere yet.
            Err(_) if symlink_metadata(place).await.is_ok() => return false,
            Err(_) => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_lies_beside_the_project_is_not_lent() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let project = dir.join("mine");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(dir.join("secret"), "x").unwrap();
        for (link, to) in [
            ("out", "../secret"),
            ("nowhere", "../not_yet"),
            ("up", ".."),
        ] {
            std::os::unix::fs::symlink(to, project.join(link)).unwrap();
        }
        let at = |path: &str| project.join(path).display().to_string();
        for path in [at("a.rs"), at("src/new/a.rs")] {
            assert_eq!(inside(&project, &path).await, Ok(PathBuf::from(&path)));
        }
        let beside = dir.join("mines/a.rs").display().to_string();
        let wrong = ["out", "nowhere", "up/secret", "../secret"].map(at);
        let wrong = wrong
            .into_iter()
            .chain(["a.rs".to_owned(), String::new(), beside]);
        for path in wrong {
            assert!(inside(&project, &path).await.is_err(), "{path}");
        }
        assert_eq!(reading(&project).await, Effect::Read);
        assert_eq!(reading(Path::new("/")).await, Effect::Host);
        assert_eq!(reading(&dir.join("nowhere")).await, Effect::Host);
    }
}
