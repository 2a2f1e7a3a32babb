/** Types of the part of bitcore-lib that is used here; the package contains none. */
declare module 'bitcore-lib' {
  class PrivateKey {
    constructor(key: string)
    toPublicKey(): { toBuffer(): Buffer }
  }
  class Interpreter {
    static readonly [flag: `SCRIPT_${string}`]: number
    errstr: string
    verify(
      scriptSig: Script,
      scriptPubkey: Script,
      tx: Transaction,
      nin: number,
      flags: number,
      witness: Buffer[],
      satoshis: number,
    ): boolean
  }
  class Script {
    static Interpreter: typeof Interpreter
    static fromBuffer(script: Buffer): Script
    toBuffer(): Buffer
  }
  class Transaction {
    static Output: new (args: { satoshis: number; script: Buffer }) => unknown
    inputs: { output: unknown }[]
    constructor(hex: string)
  }
  const library: {
    PrivateKey: typeof PrivateKey
    Script: typeof Script
    Transaction: typeof Transaction
    crypto: { ECDSA: { sign(hash: Buffer, key: PrivateKey): { toDER(): Buffer } } }
  }
  export default library
}
