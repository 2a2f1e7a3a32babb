// Every chain family, by the name that its folder and the registry call it. A new one is a folder
// and a line here; `template` stands in none.
export { cardano } from './cardano/index.ts'
export { evm } from './evm/index.ts'
export { solana } from './solana/index.ts'
export { stellar } from './stellar/index.ts'
export { tron } from './tron/index.ts'
export { utxo } from './utxo/index.ts'
export { xrp } from './xrp/index.ts'
