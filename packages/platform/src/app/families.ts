// All families of chains, by name. A new family is a folder in `families` and a line here.
// `template` is not included.
export { connectCardano as cardano } from '../families/cardano/index.ts'
export { connectEvm as evm } from '../families/evm/index.ts'
export { connectSolana as solana } from '../families/solana/index.ts'
export { connectStellar as stellar, connectXrp as xrp } from '../families/tagged/index.ts'
export { connectTron as tron } from '../families/tron/index.ts'
export { connectUtxo as utxo } from '../families/utxo/index.ts'
