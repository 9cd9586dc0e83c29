// Images on their way into a message: checked, and made smaller where they are larger than a
// model can use.

export const MAX_IMAGES = 8;
export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif'];
/** Models look at images far below this size; more only costs time. */
const MAX_SIDE_PX = 2048;
/** Below this an image goes as it is. */
const KEEP_BYTES = 1_000_000;
const MAX_BYTES = 4_000_000;
const JPEG_QUALITY = 0.86;

export class ImageError extends Error {
  /** @param {'image_type' | 'image_size'} reason */
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

/**
 * The image as base64.
 * @param {File} file
 * @returns {Promise<string>}
 */
export async function readImage(file) {
  if (!IMAGE_TYPES.includes(file.type)) throw new ImageError('image_type');
  /** @type {ImageBitmap} */
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new ImageError('image_type');
  }
  const scale = Math.min(1, MAX_SIDE_PX / Math.max(bitmap.width, bitmap.height));
  const blob = file.size <= KEEP_BYTES && scale === 1 ? file : await smaller(bitmap, scale);
  bitmap.close();
  if (blob.size > MAX_BYTES) throw new ImageError('image_size');
  return base64(blob);
}

/**
 * @param {ImageBitmap} bitmap
 * @param {number} scale
 * @returns {Promise<Blob>}
 */
function smaller(bitmap, scale) {
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext('2d');
  if (context === null) throw new ImageError('image_size');
  // JPEG knows no transparency: what is clear becomes white, not black.
  context.fillStyle = '#fff';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob === null ? reject(new ImageError('image_size')) : resolve(blob)),
      'image/jpeg', JPEG_QUALITY);
  });
}

/**
 * @param {Blob} blob
 * @returns {Promise<string>}
 */
function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^data:[^,]*,/, ''));
    reader.onerror = () => reject(new ImageError('image_size'));
    reader.readAsDataURL(blob);
  });
}
