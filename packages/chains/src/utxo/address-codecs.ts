// What of bitcoinjs-lib addresses need, for browsers: the rest of it is half as much again as the
// whole panel.
export { address, initEccLib, payments } from 'bitcoinjs-lib'
