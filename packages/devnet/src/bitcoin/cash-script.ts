import { splitToken, type Token } from './cash-tokens.ts'
import type { Spent, Tx } from './transaction.ts'

type Machine = typeof import('@bitauth/libauth')
let machine: { library: Machine; vm: ReturnType<Machine['createVirtualMachineBCH']> } | undefined

/**
 * Loads the virtual machine, which takes thirty megabytes and is needed only by processes with this
 * chain.
 */
export async function loadCashMachine(): Promise<void> {
  const library = await import('@bitauth/libauth')
  machine ??= { library, vm: library.createVirtualMachineBCH(true) }
}

/**
 * Executes every input in Bitcoin Cash's own virtual machine. Returns the error, or undefined if
 * all inputs are valid.
 */
export function verifyCash(tx: Tx, spent: readonly Spent[]): string | undefined {
  if (!machine) throw new Error('the virtual machine of Bitcoin Cash is not loaded')
  const transaction = machine.library.decodeTransaction(Uint8Array.from(tx.raw))
  if (typeof transaction === 'string') return transaction
  const sourceOutputs = spent.map(({ value, script }) => {
    const { token, locking } = splitToken(script)
    return {
      valueSatoshis: value,
      lockingBytecode: Uint8Array.from(locking),
      ...(token ? { token: sourceToken(token) } : {}),
    }
  })
  const verdict = machine.vm.verify({ sourceOutputs, transaction })
  return verdict === true ? undefined : verdict
}

/**
 * Converts a token to the library's form, which uses the display byte order of a category and not
 * that of inputs.
 */
function sourceToken({ category, amount, nft }: Token) {
  return {
    amount,
    category: Uint8Array.from(Buffer.from(category).reverse()),
    ...(nft
      ? { nft: { capability: nft.capability, commitment: Uint8Array.from(nft.commitment) } }
      : {}),
  }
}
