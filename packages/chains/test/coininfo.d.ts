declare module 'coininfo' {
  interface Coin {
    hashGenesisBlock: string
    bech32?: string
    versions: { public: number; scripthash: number }
  }
  /** Of a main network by its ticker; null: the library has none. */
  export default function coininfo(ticker: string): Coin | null
}
