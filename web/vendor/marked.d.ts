export { Lexer } from 'marked';
export type { Token, Tokens, TokensList } from 'marked';
