//! `/sessions/{session_id}/files`: files of a session, sent in, listed, downloaded, deleted.
//!
//! Nothing that was sent in is ever shown by a browser under our name: a download is an
//! attachment without a type of its own, and an image is one that we made ourselves.

use std::time::Duration;

use actix_multipart::{Field, Multipart, MultipartError};
use actix_web::body::SizedStream;
use actix_web::error::PayloadError;
use actix_web::http::Method;
use actix_web::http::header::{
    self, Charset, ContentDisposition, DispositionParam, DispositionType, ExtendedValue,
    HeaderValue,
};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use navi_actors::domain::files::MAX_FILES;
use navi_actors::domain::permissions::Action;
use navi_actors::files::{Download, InlineImage, Upload};
use navi_actors::protocol::error::ErrorCode;
use navi_actors::protocol::ids::{FileId, SessionId};
use schemars::JsonSchema;
use tokio_util::io::ReaderStream;

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use super::pace;
use super::path::{SessionPath, id_of, session_id};
use crate::access::Principal;

/// What is sent in, as OpenAPI has it.
#[derive(Debug, JsonSchema)]
#[expect(dead_code, reason = "read part by part, and never held whole")]
pub(crate) struct UploadForm {
    /// At most 20 of them; the parts may have any name.
    #[schemars(with = "Vec<Binary>", length(min = 1, max = MAX_FILES))]
    file: (),
}

/// A file in a form.
#[derive(Debug, JsonSchema)]
#[schemars(inline, extend("format" = "binary", "minLength" = 1))]
#[expect(dead_code, reason = "read part by part, and never held whole")]
struct Binary(String);

/// How long what is still coming is read after a refusal: a client that is cut off in
/// mid-sentence does not hear why.
const LISTENING: Duration = Duration::from_secs(2);
/// Parts of an upload, those that are no files among them.
const MAX_PARTS: usize = 64;
/// What a part may hold that is no file.
const MAX_FIELD_BYTES: usize = 64 * 1024;
/// A download is read in pieces of this size.
const PIECE_BYTES: usize = 64 * 1024;
/// Whatever is in it, nothing of it runs.
const LIFELESS: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");

pub(crate) fn routes() -> [Endpoint; 3] {
    [
        endpoint("/sessions/{session_id}/files")
            .on(Method::GET, Action::ReadFiles, list)
            .on(Method::POST, Action::ChangeFiles, upload),
        endpoint("/sessions/{session_id}/files/{file_id}")
            .on(Method::GET, Action::ReadFiles, download)
            .on(Method::DELETE, Action::ChangeFiles, delete),
        endpoint("/sessions/{session_id}/files/{file_id}/image").on(
            Method::GET,
            Action::ReadFiles,
            image,
        ),
    ]
}

#[utoipa::path(get, path = "/sessions/{session_id}/files", operation_id = "list_files", tag = "files",
    params(("session_id" = Uuid, Path,)),
    responses((status = 200, description = "The session's files, oldest first: what its user sent in, and images that tools gave back.", body = ref("#/components/schemas/FileList")), Failures))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
) -> Result<HttpResponse, ApiError> {
    Ok(HttpResponse::Ok().json(app.engine.files(who.user, session).await?))
}

#[utoipa::path(post, path = "/sessions/{session_id}/files", tag = "files",
    params(("session_id" = Uuid, Path,)),
    request_body(content = ref("#/components/schemas/UploadForm"), content_type = "multipart/form-data", description = "Each part with a filename is a file. All of them are stored, or none is."),
    responses((status = 201, description = "The new files. A message names one by its `path`.", body = ref("#/components/schemas/FileList")), Failures))]
pub(crate) async fn upload(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    request: HttpRequest,
    mut body: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let kind = request.mime_type().ok().flatten();
    // Without a boundary there is nothing to read, and `Multipart` panics when it is asked again.
    let is_multipart = kind.is_some_and(|kind| {
        let boundary = kind.get_param("boundary");
        kind.essence_str() == "multipart/form-data"
            && boundary.is_some_and(|it| !it.as_str().is_empty())
    });
    if !is_multipart {
        listen_out(&mut body).await;
        return Err(refused(&MultipartError::ContentTypeIncompatible));
    }
    let mut parts = Multipart::new(request.headers(), body);
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok());
    let received = async {
        let mut upload = app
            .engine
            .begin_upload(who.user, session, announced)
            .await?;
        receive(&app, &mut upload, &mut parts).await?;
        Ok(upload)
    };
    let upload = match received.await {
        Ok(upload) => upload,
        Err(error) => {
            listen_out(&mut parts).await;
            return Err(error);
        }
    };
    Ok(HttpResponse::Created().json(app.engine.finish_upload(who.user, session, upload).await?))
}

#[utoipa::path(get, path = "/sessions/{session_id}/files/{file_id}", operation_id = "download_file", tag = "files",
    params(("session_id" = Uuid, Path,), ("file_id" = Uuid, Path,)),
    responses((status = 200, description = "The file as it was sent in, always as an attachment.", content_type = "application/octet-stream"), Failures))]
pub(crate) async fn download(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let (session, file) = ids(&path)?;
    let download = app.engine.download(who.user, session, file).await?;
    Ok(sent(download))
}

#[utoipa::path(get, path = "/sessions/{session_id}/files/{file_id}/image", operation_id = "file_image", tag = "files",
    params(("session_id" = Uuid, Path,), ("file_id" = Uuid, Path,)),
    responses((status = 200, description = "An image (PNG or JPEG) that Navi made of the file, for the page to show.", content(("image/png"), ("image/jpeg"))), Failures))]
pub(crate) async fn image(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let (session, file) = ids(&path)?;
    let image = app.engine.file_image(who.user, session, file).await?;
    Ok(shown(image, "private, max-age=600"))
}

#[utoipa::path(delete, path = "/sessions/{session_id}/files/{file_id}", operation_id = "delete_file", tag = "files",
    params(("session_id" = Uuid, Path,), ("file_id" = Uuid, Path,)),
    responses((status = 204, description = "Deleted for good: the model reads nothing of it either from here on."), Failures))]
pub(crate) async fn delete(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let (session, file) = ids(&path)?;
    app.engine.delete_file(who.user, session, file).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// A file for its user to keep, as it is sent.
pub(super) fn sent(download: Download) -> HttpResponse {
    let pieces = ReaderStream::with_capacity(download.content, PIECE_BYTES);
    let body = SizedStream::new(download.bytes, pieces);
    HttpResponse::Ok()
        .insert_header(attachment(&download.name))
        .insert_header((header::CONTENT_SECURITY_POLICY, LIFELESS))
        // Never what the sender said it was, nor what it looks like.
        .content_type("application/octet-stream")
        .body(body)
}

/// An image of our own making, as it is sent; a browser keeps it as `cached` says.
pub(super) fn shown(image: InlineImage, cached: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CONTENT_SECURITY_POLICY, LIFELESS))
        .insert_header((header::CACHE_CONTROL, cached))
        .content_type(image.media_type)
        .body(image.bytes)
}

/// Takes every file of a body in.
async fn receive(app: &App, upload: &mut Upload, parts: &mut Multipart) -> Result<(), ApiError> {
    for _ in 0..MAX_PARTS {
        let Some(part) = parts.next().await else {
            return Ok(());
        };
        let mut part = part.map_err(|error| refused(&error))?;
        let name = part
            .content_disposition()
            .and_then(|part| part.get_filename_ext().map(|name| extended(&name.value)))
            .or_else(|| {
                let name = part.content_disposition()?.get_filename()?;
                Some(name.to_owned())
            });
        match name {
            Some(name) => {
                upload.file(&name).await?;
                while let Some(piece) = next_piece(&mut part).await? {
                    app.engine.go_on(upload, &piece).await?;
                }
            }
            None => skip(&mut part).await?,
        }
    }
    Err(ApiError::new(
        ErrorCode::TooManyFiles,
        format!("an upload has at most {MAX_PARTS} parts"),
    ))
}

async fn skip(part: &mut Field) -> Result<(), ApiError> {
    let mut bytes = 0;
    while let Some(piece) = next_piece(part).await? {
        bytes += piece.len();
        if bytes > MAX_FIELD_BYTES {
            return Err(ApiError::new(
                ErrorCode::InvalidUpload,
                "a part without a filename is no file; give each file a filename",
            ));
        }
    }
    Ok(())
}

async fn next_piece(part: &mut Field) -> Result<Option<Bytes>, ApiError> {
    let piece = part.next().await;
    piece.transpose().map_err(|error| refused(&error))
}

/// Reads what is still coming, for a moment.
async fn listen_out<T, E>(coming: &mut (impl Stream<Item = Result<T, E>> + Unpin)) {
    let rest = async { while let Some(Ok(_)) = coming.next().await {} };
    // Who sends on after that hears nothing but the end.
    let _ = tokio::time::timeout(LISTENING, rest).await;
}

fn refused(error: &MultipartError) -> ApiError {
    if let MultipartError::Payload(error) = error
        && let Some(too_slow) = pace::too_slow(error)
    {
        return too_slow;
    }
    match error {
        MultipartError::ContentTypeMissing
        | MultipartError::ContentTypeParse
        | MultipartError::ContentTypeIncompatible => ApiError::new(
            ErrorCode::UnsupportedMediaType,
            "files are sent as Content-Type: multipart/form-data, with a boundary",
        ),
        MultipartError::Incomplete | MultipartError::Payload(PayloadError::Incomplete(_)) => {
            ApiError::new(
                ErrorCode::InvalidUpload,
                "the upload was cut off; nothing was stored, send it again",
            )
        }
        other => ApiError::new(
            ErrorCode::InvalidUpload,
            format!("the upload cannot be read: {other}"),
        ),
    }
}

/// The name in `filename*`: UTF-8, whatever it says.
fn extended(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// Says that a browser saves this and shows nothing of it, under a name that it can only take
/// as a name: the label has no separators and no control characters.
fn attachment(name: &str) -> ContentDisposition {
    let plain: String = name
        .chars()
        .map(|c| match c {
            '"' | '\\' | '%' | '/' => '_',
            c if c.is_ascii_graphic() || c == ' ' => c,
            _ => '_',
        })
        .collect();
    ContentDisposition {
        disposition: DispositionType::Attachment,
        parameters: vec![
            DispositionParam::Filename(plain),
            DispositionParam::FilenameExt(ExtendedValue {
                charset: Charset::Ext("UTF-8".to_owned()),
                language_tag: None,
                value: name.as_bytes().to_vec(),
            }),
        ],
    }
}

fn ids(path: &(String, String)) -> Result<(SessionId, FileId), ApiError> {
    let file = id_of("a file's", &path.1)?;
    Ok((session_id(&path.0)?, file))
}
