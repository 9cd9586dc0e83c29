// Which advice belongs to which error code. The texts are `error.<group>.title` and `.hint` of
// the dictionaries.

/** @type {Record<string, string>} */
export const ERROR_GROUPS = {
  invalid_json: 'internal',
  unknown_type: 'internal',
  invalid_field: 'input',
  binary_frame: 'internal',
  frame_too_large: 'input',
  body_too_large: 'input',
  unsupported_media_type: 'internal',
  empty_message: 'input',
  message_too_large: 'input',
  too_many_images: 'input',
  image_too_large: 'input',
  invalid_image: 'input',
  invalid_id: 'gone',
  file_not_found: 'gone',
  unknown_profile: 'gone',
  unauthorized: 'signin',
  forbidden_origin: 'signin',
  forbidden_host: 'signin',
  not_found: 'gone',
  method_not_allowed: 'internal',
  session_not_found: 'gone',
  message_not_found: 'gone',
  approval_not_found: 'gone',
  session_busy: 'busy_session',
  queue_full: 'busy_session',
  nothing_to_continue: 'gone',
  model_unknown: 'model_missing',
  backend_unavailable: 'model_server',
  backend_busy: 'busy',
  backend_unauthorized: 'key',
  backend_error: 'broken',
  backend_stream_broken: 'broken',
  model_not_found: 'model_missing',
  context_overflow: 'too_long',
  empty_reply: 'empty',
  first_chunk_timeout: 'slow',
  chunk_timeout: 'slow',
  reply_too_long: 'broken',
  run_failed: 'internal',
  rate_limited: 'busy',
  shutting_down: 'restart',
  store_unavailable: 'store',
  internal: 'internal',
  // The page's own.
  unreachable: 'unreachable',
};

/** @param {string} code */
export const errorGroup = (code) => ERROR_GROUPS[code] ?? 'internal';
