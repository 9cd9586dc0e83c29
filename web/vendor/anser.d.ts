export { default } from 'anser';
