//! Fetching what must not be fetched: places of the owner's own network, and answers that never
//! end. Each with a site that would answer, so that only the guard is in the way.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use navi_actors::tools::net::grants::Grants;
use navi_actors::tools::net::guard::{Guard, Resolve};
use navi_actors::tools::web_fetch::WebFetch;
use navi_actors::tools::{Tool as _, ToolResult};
use serde_json::json;

use super::site::{Site, SiteReply, answer, page, redirect};
use super::tool_context::context;
use crate::processes::is_root;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Names a site to the process that a test starts.
const SITE: &str = "NAVI_TEST_SITE";

/// A tool with less time and room.
fn tool(guard: Guard) -> WebFetch {
    let mut tool = WebFetch::new(guard);
    tool.time = Duration::from_secs(20);
    tool.max_bytes = 1024 * 1024;
    tool
}

/// A tool of an owner who granted these.
fn granted(list: &str) -> WebFetch {
    tool(Guard::new(Grants::parse(list).unwrap()))
}

async fn fetched(tool: &WebFetch, url: &str) -> ToolResult {
    let call = tool.call(json!({"url": url}), context(Path::new("/")));
    tokio::time::timeout(Duration::from_secs(30), call)
        .await
        .expect("it ends")
}

async fn refused(tool: &WebFetch, url: &str) -> String {
    match fetched(tool, url).await {
        Err(error) => error.to_string(),
        Ok(output) => panic!("{url} was fetched: {}", output.text),
    }
}

/// A name server that answers what it was given, one after the other; the last for ever.
#[derive(Debug)]
struct Names {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    fn answering(answers: &[&[&str]]) -> Arc<Self> {
        let answers = answers
            .iter()
            .map(|ips| ips.iter().map(|ip| ip.parse().unwrap()).collect())
            .collect();
        Arc::new(Self {
            answers: Mutex::new(answers),
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

#[async_trait]
impl Resolve for Names {
    async fn addresses(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(host.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let next = if answers.len() > 1 {
            answers.pop_front()
        } else {
            answers.front().cloned()
        };
        Ok(next.unwrap_or_default())
    }
}

fn named(list: &str, names: &Arc<Names>) -> WebFetch {
    let grants = Grants::parse(list).unwrap();
    let resolver = Arc::clone(names) as Arc<dyn Resolve>;
    tool(Guard::with_resolver(grants, resolver))
}

#[tokio::test]
async fn private_link_local_and_other_inner_addresses() {
    let site = Site::start(LOOPBACK, |_| page("inside")).await;
    let port = site.address.port();
    for host in [
        "127.0.0.1",
        "127.8.8.8",
        "localhost",
        "LOCALHOST.",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[fe80::1]",
        "[fd00::1]",
        "[ff02::1]",
    ] {
        let error = refused(&granted(""), &format!("http://{host}:{port}/")).await;
        assert!(error.contains("does not reach"), "{host}: {error}");
        assert!(error.contains("NAVI_FETCH_ALLOWED_HOSTS"), "{error}");
    }
    assert_eq!(site.requests(), Vec::<String>::new());
    // The same address with a grant: it is the guard that refused.
    let tool = granted("127.0.0.1");
    assert!(fetched(&tool, &site.url("/")).await.is_ok());
}

#[tokio::test]
async fn ipv4_in_ipv6() {
    let site = Site::start(LOOPBACK, |_| page("inside")).await;
    let port = site.address.port();
    for host in [
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:7f00:0001]",
        "[::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
    ] {
        let error = refused(&granted(""), &format!("http://{host}:{port}/")).await;
        assert!(error.contains("does not reach"), "{host}: {error}");
    }
    assert_eq!(site.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn decimal_octal_and_other_forms() {
    let site = Site::start(LOOPBACK, |_| page("inside")).await;
    let port = site.address.port();
    for host in [
        "2130706433",
        "0x7f000001",
        "0X7F.1",
        "017700000001",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "0",
        "0x0",
        "127.0.0.1.",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "%31%32%37.0.0.1",
    ] {
        let error = refused(&granted(""), &format!("http://{host}:{port}/")).await;
        assert!(error.contains("does not reach"), "{host}: {error}");
    }
    assert_eq!(site.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_name_that_leads_inside() {
    for inside in [
        "127.0.0.1",
        "169.254.169.254",
        "10.1.2.3",
        "::1",
        "::ffff:10.0.0.1",
    ] {
        let names = Names::answering(&[&[inside]]);
        let error = refused(&named("", &names), "http://evil.example/").await;
        assert!(error.contains("evil.example is"), "{error}");
        // One good address does not excuse a bad one.
        let names = Names::answering(&[&["1.1.1.1", inside]]);
        let error = refused(&named("", &names), "http://evil.example/").await;
        assert!(error.contains("does not reach"), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_that_leads_inside() {
    let inner = Site::start(LOOPBACK, |_| page("inside")).await;
    let at = inner.address;
    for target in [
        format!("http://{at}/"),
        format!("http://localhost:{}/", at.port()),
        format!("//{at}/"),
        format!("http://2130706433:{}/", at.port()),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::1]/".to_owned(),
    ] {
        let to = target.clone();
        let outer = Site::start("127.0.0.2".parse().unwrap(), move |_| redirect(&to)).await;
        match fetched(&granted("127.0.0.2"), &outer.url("/")).await {
            Err(error) => assert!(error.0.contains("does not reach"), "{target}: {error}"),
            // A name is not even looked up.
            Ok(told) => assert!(
                told.text.starts_with("not followed") && target.contains("localhost"),
                "{target}: {}",
                told.text
            ),
        }
        assert_eq!(outer.requests().len(), 1);
    }
    assert_eq!(inner.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_redirect_to_another_scheme() {
    for (target, said) in [
        ("file:///etc/passwd", "file: addresses are not fetched"),
        ("ftp://example.com/", "ftp: addresses"),
        ("gopher://127.0.0.1:6379/_FLUSHALL", "gopher: addresses"),
        ("data:text/html,x", "data: addresses"),
        ("http://me:pw@example.com/", "a user name or a password"),
    ] {
        let to = target.to_owned();
        let site = Site::start(LOOPBACK, move |_| redirect(&to)).await;
        let error = refused(&granted("127.0.0.1"), &site.url("/")).await;
        assert!(error.contains(said), "{target}: {error}");
    }
}

/// An allowed host that redirects anywhere would carry out whatever stands in the address.
#[tokio::test]
async fn a_redirect_that_would_carry_data_to_another_host() {
    let thief = Site::start(LOOPBACK, |_| page("thanks")).await;
    let to = thief.url("/?q=secret");
    let open = Site::start("127.0.0.2".parse().unwrap(), move |_| redirect(&to)).await;
    let output = fetched(&granted("127.0.0.0/8"), &open.url("/go"))
        .await
        .unwrap();
    assert!(output.text.starts_with("not followed"), "{}", output.text);
    assert_eq!(thief.requests(), Vec::<String>::new());
}

/// Looking a name up is a message to whoever answers for it.
#[tokio::test]
async fn a_redirect_whose_name_would_carry_data_to_a_name_server() {
    let open = Site::start("127.0.0.2".parse().unwrap(), |_| {
        redirect("http://secret.evil.example/")
    })
    .await;
    let names = Names::answering(&[&["127.0.0.2"]]);
    let tool = named("127.0.0.2", &names);
    let url = format!("http://good.example:{}/", open.address.port());
    let output = fetched(&tool, &url).await.unwrap();
    assert!(output.text.starts_with("not followed"), "{}", output.text);
    assert_eq!(*names.asked.lock().unwrap(), ["good.example"]);
}

#[tokio::test]
async fn a_name_that_resolves_to_another_address_the_second_time() {
    let good = Site::start("127.0.0.2".parse().unwrap(), |head| {
        if head.starts_with("GET /again") {
            redirect("/inside")
        } else {
            page("good")
        }
    })
    .await;
    // It stands where the second answer leads, on the same port.
    let inner = SocketAddr::new(LOOPBACK, good.address.port());
    let inner = Site::start_on(inner, |_| page("inside")).await;
    let url = format!("http://twice.example:{}", good.address.port());

    let names = Names::answering(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let output = fetched(&named("127.0.0.2", &names), &url).await.unwrap();
    assert!(output.text.ends_with("good"), "{}", output.text);
    assert_eq!(names.asked(), 1, "a name is resolved once");

    // A redirect is a new look at the name, and the new answer is looked at too.
    let names = Names::answering(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let error = refused(&named("127.0.0.2", &names), &format!("{url}/again")).await;
    assert!(error.contains("does not reach"), "{error}");
    assert_eq!(names.asked(), 2);
    assert_eq!(inner.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn files_and_other_schemes() {
    for (url, said) in [
        ("file:///etc/passwd", "file: addresses are not fetched"),
        ("FILE:/etc/passwd", "file: addresses"),
        ("ftp://example.com/", "ftp: addresses"),
        ("jar:http://example.com!/", "jar: addresses"),
        (
            "http://user:password@127.0.0.1/",
            "a user name or a password",
        ),
        ("http://example.com\\@127.0.0.1/", "backslash"),
        ("http://127.0.0.1\t.example.com/", "control characters"),
        ("//127.0.0.1/", "write it whole"),
        ("/etc/passwd", "write it whole"),
    ] {
        let error = refused(&granted("*"), url).await;
        assert!(error.contains(said), "{url}: {error}");
        assert!(!error.contains("password@"), "{error}");
    }
}

/// A machine of its own, with public addresses and one more of the same networks: those that the
/// process beside it is told to fetch from.
#[tokio::test]
async fn the_machines_own_public_address_and_its_ipv6_neighbours() {
    let network = "ip link set lo up && ip addr add 198.41.0.4/24 dev lo \
        && ip addr add 2001:41d0:a:b::5/64 dev lo nodad \
        && echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind \
        && ip route add local 2001:41d0::/32 dev lo && ip route add local 198.41.9.9 dev lo \
        && exec \"$@\"";
    let this = std::env::current_exe().unwrap();
    let user = if is_root() { "-n" } else { "-rn" };
    let mut again = tokio::process::Command::new("unshare");
    again
        .args([user, "sh", "-c", network, "sh"])
        .arg(this)
        .args(["--exact", "security::fetch::fetches_from_its_own_networks"])
        .env(SITE, "its own");
    let output = again.output().await.unwrap();
    assert!(output.status.success(), "{output:#?}");
}

/// The other half of the test above: it has nothing to do when it is run by itself.
#[tokio::test]
async fn fetches_from_its_own_networks() {
    if std::env::var(SITE).is_err() {
        return;
    }
    for (ip, kind) in [
        ("198.41.0.4", Some("is this machine")),
        ("2001:41d0:a:b::5", Some("is this machine")),
        ("2001:41d0:a:b::1234", Some("this machine's own network")),
        // The internet, as far as this machine knows it.
        ("2001:41d0:a:c::5", None),
        ("198.41.9.9", None),
    ] {
        let site = Site::start(ip.parse().unwrap(), |_| page("inside")).await;
        let url = site.url("/");
        match kind {
            Some(kind) => {
                let error = refused(&granted(""), &url).await;
                assert!(error.contains(kind), "{ip}: {error}");
                assert_eq!(site.requests(), Vec::<String>::new(), "{ip}");
                let output = fetched(&granted(ip), &url).await.unwrap();
                assert!(output.text.ends_with("inside"), "{}", output.text);
            }
            None => {
                let output = fetched(&granted(""), &url).await.unwrap();
                assert!(output.text.ends_with("inside"), "{}", output.text);
            }
        }
    }
}

/// The machine's proxy would connect where it likes. A process of its own, since the environment
/// belongs to all the tests of this one.
#[tokio::test]
async fn a_proxy_in_the_environment() {
    let site = Site::start(LOOPBACK, |_| page("direct")).await;
    let mut again = tokio::process::Command::new(std::env::current_exe().unwrap());
    again
        .args([
            "--exact",
            "security::fetch::reaches_the_site_that_it_is_told",
        ])
        .env(SITE, site.url("/direct"));
    for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"] {
        again.env(name, "http://127.0.0.1:9");
    }
    let output = again.output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert_eq!(site.requests().len(), 1, "{said}");
}

/// The other half of the test above: it has nothing to do when it is run by itself.
#[tokio::test]
async fn reaches_the_site_that_it_is_told() {
    if let Ok(url) = std::env::var(SITE) {
        let output = fetched(&granted("127.0.0.1"), &url).await.unwrap();
        assert!(output.text.ends_with("direct"), "{}", output.text);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn compressed_bombs() {
    let bomb = gzip(&vec![b'a'; 64 * 1024 * 1024]);
    assert!(bomb.len() < 100_000);
    let twice = gzip(&bomb);
    for (encoding, body, said) in [
        ("gzip", bomb.clone(), "larger than 1.0 MiB"),
        ("gzip, gzip", twice, "was not asked for"),
        ("br", bomb.clone(), "encoded in br"),
        ("zstd", bomb.clone(), "encoded in zstd"),
        ("deflate", bomb, "encoded in deflate"),
    ] {
        let encoding = format!("Content-Encoding: {encoding}");
        let site = Site::start(LOOPBACK, move |_| {
            answer("200 OK", &["Content-Type: text/html", &encoding], &body)
        })
        .await;
        let error = refused(&granted("127.0.0.1"), &site.url("/")).await;
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn an_endless_body() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_vec();
    let piece = vec![b'a'; 64 * 1024];
    let site = Site::start(LOOPBACK, move |_| {
        SiteReply::Endless(head.clone(), piece.clone(), Duration::ZERO)
    })
    .await;
    let error = refused(&granted("127.0.0.1"), &site.url("/")).await;
    assert!(error.contains("larger than 1.0 MiB"), "{error}");

    let told = Site::start(LOOPBACK, |_| {
        SiteReply::Bytes(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99999999999\r\n\r\n"
                .to_vec(),
        )
    })
    .await;
    let error = refused(&granted("127.0.0.1"), &told.url("/")).await;
    assert!(error.contains("larger than 1.0 MiB"), "{error}");
}

#[tokio::test]
async fn endless_headers() {
    let head = b"HTTP/1.1 200 OK\r\n".to_vec();
    let site = Site::start(LOOPBACK, move |_| {
        let header = format!("X-A: {}\r\n", "a".repeat(4000)).into_bytes();
        SiteReply::Endless(head.clone(), header, Duration::ZERO)
    })
    .await;
    let begun = Instant::now();
    refused(&granted("127.0.0.1"), &site.url("/")).await;
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_slow_body_and_a_silent_server() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_vec();
    let slow = Site::start(LOOPBACK, move |_| {
        SiteReply::Endless(head.clone(), b"a".to_vec(), Duration::from_millis(100))
    })
    .await;
    let silent = Site::start(LOOPBACK, |_| SiteReply::Silence).await;
    let mut tool = granted("127.0.0.1");
    tool.time = Duration::from_secs(3);
    for site in [&slow, &silent] {
        let error = refused(&tool, &site.url("/")).await;
        assert!(error.contains("within 3 s"), "{error}");
    }
}

#[tokio::test]
async fn a_loop_of_redirects() {
    let site = Site::start(LOOPBACK, |_| redirect("/")).await;
    let error = refused(&granted("127.0.0.1"), &site.url("/")).await;
    assert!(error.contains("redirects more than 10 times"), "{error}");
    assert_eq!(site.requests().len(), 11);
}

#[tokio::test]
async fn a_page_that_is_a_bomb_of_elements() {
    let nested = "<div>".repeat(200_000);
    let site = Site::start(LOOPBACK, move |_| page(&nested)).await;
    let begun = Instant::now();
    // Whatever comes of it, it comes soon and the process lives.
    let _ = fetched(&granted("127.0.0.1"), &site.url("/")).await;
    assert!(begun.elapsed() < Duration::from_secs(30));
}
