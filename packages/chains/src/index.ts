export * from './types.ts'
export * from './amount.ts'
export * from './mode.ts'
export * from './derivation.ts'
export * from './registry.ts'
export { isBeyondWorth } from './sweep/worth.ts'
export type { Cancellation, Expiry, RefusalKind, Traits } from './traits.ts'
export { paymentUri } from './payment-uri.ts'
export { policyRegistry } from './policy/policy-registry.ts'
export {
  familyOf,
  traitsOf,
  refusalKind,
  withNonce,
  decode,
  signing,
  assemble,
  verifySigned,
  exclusive,
  addressAt,
  validateAddress,
  publicKeysBelow,
} from './families.ts'
export * as utxo from './utxo/build.ts'
export * as evm from './evm/build.ts'
export * as xrp from './xrp/build.ts'
export * as stellar from './stellar/build.ts'
export * as tron from './tron/build.ts'
export * as solana from './solana/build.ts'
export * as cardano from './cardano/build.ts'
export * from './rpc.ts'
export type { ReportUnreadable, Unreadable } from './unreadable.ts'
export { UtxoClient } from './utxo/rpc.ts'
export type { FeeReading } from './utxo/fee-rates.ts'
export { EvmClient } from './evm/rpc.ts'
export type { EvmFeeRates } from './evm/fee-rates.ts'
export { XrpClient } from './xrp/rpc.ts'
export { StellarClient } from './stellar/rpc.ts'
export { TronClient, type TronParameters, type TronAccount } from './tron/rpc.ts'
export { SolanaClient } from './solana/rpc.ts'
export { CardanoClient } from './cardano/rpc.ts'
