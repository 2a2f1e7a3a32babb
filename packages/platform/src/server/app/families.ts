// All families of chains, by name. A new family is a folder in `families` and a line here.
// `template` is not included.
export { connectCardano as cardano } from '../../core/families/cardano/index.ts'
export { connectEvm as evm } from '../../core/families/evm/index.ts'
export { connectSolana as solana } from '../../core/families/solana/index.ts'
export { connectStellar as stellar, connectXrp as xrp } from '../../core/families/tagged/index.ts'
export { connectTron as tron } from '../../core/families/tron/index.ts'
export { connectUtxo as utxo } from '../../core/families/utxo/index.ts'
