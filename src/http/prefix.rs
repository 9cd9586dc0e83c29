//! The prefix that Navi has outside: a proxy may take it off, or leave it on.

use actix_web::HttpResponse;
use actix_web::dev::ServiceRequest;
use actix_web::http::Uri;
use actix_web::http::header;
use actix_web::http::uri::PathAndQuery;

use super::{Places, all_endpoints};
use crate::settings::PublicUrl;

/// What a path is that came from outside.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outside {
    /// One of ours, without the prefix by now.
    Path,
    /// The prefix itself without its slash, behind which the page's own addresses lead elsewhere:
    /// where the page is.
    Page(String),
}

/// The prefix that a proxy may leave on. None where there is none, or where it is the beginning of
/// a path of ours: that path is meant then, and the proxy has to take the prefix off.
pub(super) fn left_on(public: &PublicUrl) -> Option<String> {
    let prefix = public.prefix();
    let is_within = |path: &str| {
        let rest = path.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_ours = all_endpoints().iter().any(|it| is_within(it.path()));
    (!prefix.is_empty() && !is_ours).then(|| prefix.to_owned())
}

/// Takes the prefix off a request, where it is there.
pub(super) fn take_off(request: &mut ServiceRequest, places: &Places) -> Outside {
    let (Some(public), Some(prefix)) = (&places.public, &places.prefix) else {
        return Outside::Path;
    };
    match request.path().strip_prefix(prefix.as_str()) {
        Some("") => return Outside::Page(public.url.to_string()),
        Some(rest) if rest.starts_with('/') => {}
        _ => return Outside::Path,
    }
    if let Some(uri) = shortened(request.uri(), prefix) {
        request.match_info_mut().get_mut().update(&uri);
        request.head_mut().uri = uri;
    }
    Outside::Path
}

/// The way to the page, for who left out the last slash.
pub(super) fn on_to(page: &str) -> HttpResponse {
    HttpResponse::PermanentRedirect()
        .insert_header((header::LOCATION, page))
        .finish()
}

fn shortened(uri: &Uri, prefix: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    let path = parts.path_and_query.as_ref()?.as_str();
    let path = path.strip_prefix(prefix)?;
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;
    use crate::tls::Wire;

    fn places(url: &str) -> Places {
        let public = PublicUrl {
            url: url.parse().unwrap(),
            authority: "home.example".to_owned(),
        };
        Places::new("127.0.0.1:8000".parse().unwrap(), Wire::Plain, Some(public))
    }

    #[test]
    fn it_is_taken_off_where_it_is_there() {
        let here = places("https://home.example/a/navi/");
        for (from, to) in [
            ("/a/navi/", "/"),
            ("/a/navi/sessions?limit=1", "/sessions?limit=1"),
            ("/sessions?limit=1", "/sessions?limit=1"),
            ("/a/navi/a/navi/x", "/a/navi/x"),
            ("/a/navigate", "/a/navigate"),
            ("/a", "/a"),
        ] {
            let mut request = TestRequest::with_uri(from).to_srv_request();
            assert_eq!(take_off(&mut request, &here), Outside::Path, "{from}");
            assert_eq!(request.uri(), to);
            assert_eq!(Some(request.path()), to.split('?').next());
            assert_eq!(request.match_info().as_str(), request.path());
        }
        let mut request = TestRequest::with_uri("/a/navi").to_srv_request();
        let page = Outside::Page("https://home.example/a/navi/".to_owned());
        assert_eq!(take_off(&mut request, &here), page);
    }

    #[test]
    fn what_is_a_path_of_ours_stays_one() {
        for path in ["", "api/", "sessions/"] {
            let here = places(&format!("https://home.example/{path}"));
            assert_eq!(here.prefix, None, "{path}");
        }
        let here = places("https://home.example/apis/");
        assert_eq!(here.prefix.as_deref(), Some("/apis"));
    }
}
