// The parts of bitcoinjs-lib that addresses need, for browsers. The rest of it would enlarge the
// web panel by half.
export { address, initEccLib, payments } from 'bitcoinjs-lib'
