declare module 'coininfo' {
  interface Coin {
    hashGenesisBlock: string
    bech32?: string
    versions: { public: number; scripthash: number }
  }
  /** Returns the main network with this ticker; null: the library does not contain it. */
  export default function coininfo(ticker: string): Coin | null
}
