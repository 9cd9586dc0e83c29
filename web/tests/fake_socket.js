// A WebSocket whose other end is the test.

/** Those that were opened, oldest first. @type {FakeSocket[]} */
export const sockets = [];

export class FakeSocket {
  static OPEN = 1;
  readyState = 0;
  /** What the page said, but for its pings. @type {any[]} */
  sent = [];
  /** @type {any} */ onopen;
  /** @type {any} */ onmessage;
  /** @type {any} */ onclose;

  /** @param {string} url */
  constructor(url) {
    this.url = new URL(url);
    sockets.push(this);
  }

  open() {
    this.readyState = 1;
    this.onopen();
  }

  /** @param {unknown} frame */
  tell(frame) {
    this.onmessage({ data: JSON.stringify(frame) });
  }

  /** @param {string} text */
  send(text) {
    const frame = JSON.parse(text);
    if (frame.type === 'ping') this.pinged();
    else this.sent.push(frame);
  }

  pinged() {}

  /** @param {number} [code] */
  close(code) {
    this.readyState = 3;
    if (code !== undefined) this.onclose?.({ code });
  }
}
