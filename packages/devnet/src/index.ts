export { Devnet } from './devnet.ts'
export { EVM_NETWORKS } from './ethereum/networks.ts'
export { UTXO_NETWORKS } from './bitcoin/networks.ts'
