// Every chain family, under the name of its folder, which the registry uses too. A new family is a
// folder and a line here. `template` is not listed.
export { cardano } from './cardano/index.ts'
export { evm } from './evm/index.ts'
export { solana } from './solana/index.ts'
export { stellar } from './stellar/index.ts'
export { tron } from './tron/index.ts'
export { utxo } from './utxo/index.ts'
export { xrp } from './xrp/index.ts'
