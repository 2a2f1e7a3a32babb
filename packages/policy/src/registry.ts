/** What this package needs to know about an asset. */
export interface PolicyAsset {
  /** Decimals of the smallest unit. */
  readonly decimals: number
  /** Code of the network. */
  readonly network: string
  /** Contract of a token; null for a native coin. */
  readonly contract: string | null
  /** Native coin of the network, in which fees are paid. */
  readonly fee_asset: string
  /**
   * The wallet that pays the asset also pays the network fee. False where a gas tank usually pays it,
   * for example on EVM networks, for the native coin too.
   */
  readonly wallet_pays_fee: boolean
}

/** The assets, networks and addresses that documents and acts may name. All members are pure. */
export interface PolicyRegistry {
  /** Returns undefined for an unknown asset. */
  asset(name: string): PolicyAsset | undefined
  hasNetwork(code: string): boolean
  /**
   * Returns the canonical form of an address, in which nodes state the destination of an act.
   * Undefined: the address is not valid on the network.
   */
  canonicalAddress(network: string, address: string): string | undefined
  /**
   * Returns the canonical form of a tag, in which nodes state the tag of an act. Undefined: payments
   * to this address cannot have the tag.
   */
  canonicalTag(network: string, address: string, tag: string): string | undefined
  /**
   * Returns account and tag of an address that contains its tag: an X-address with a tag of XRP, or an
   * M… address of Stellar. Null for every other text.
   */
  splitAddress(network: string, address: string): { address: string; tag: string } | null
  /**
   * Returns a text that is the same for all addresses from which the same key can spend, for example
   * for both forms of a Cardano address. On most networks it is the canonical address.
   */
  paymentKey(network: string, address: string): string
}
