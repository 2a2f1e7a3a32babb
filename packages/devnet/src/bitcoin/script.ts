import bitcore from 'bitcore-lib'
import { isP2pkh, isP2sh, witnessProgram } from './address.ts'
import { verifyCash } from './cash-script.ts'
import type { UtxoNetwork } from './networks.ts'
import type { Spent, Tx } from './transaction.ts'

const { Script, Transaction } = bitcore
const { Interpreter } = Script

const CONSENSUS = ['P2SH', 'DERSIG', 'NULLDUMMY', 'CHECKLOCKTIMEVERIFY', 'CHECKSEQUENCEVERIFY']
const SEGWIT = ['WITNESS', 'TAPROOT']
/**
 * Script flags that nodes require beyond consensus. Two flags of the library share a bit with flags
 * of other coins, and its CLEANSTACK checks the wrong stack, so these are disabled. `templates`
 * below checks the same rules for the script forms that occur.
 */
const POLICY = ['STRICTENC', 'LOW_S', 'MINIMALDATA', 'MINIMALIF', 'NULLFAIL']
const SEGWIT_POLICY = ['WITNESS_PUBKEYTYPE']

function flagsOf(names: string[]): number {
  return names.reduce((flags, name) => flags | Interpreter[`SCRIPT_VERIFY_${name}`]!, 0)
}

const FLAGS = {
  segwit: {
    consensus: flagsOf([...CONSENSUS, ...SEGWIT]),
    policy: flagsOf([...CONSENSUS, ...SEGWIT, ...POLICY, ...SEGWIT_POLICY]),
  },
  plain: { consensus: flagsOf(CONSENSUS), policy: flagsOf([...CONSENSUS, ...POLICY]) },
}

/**
 * Executes every input's script. Returns the library's name of the error, or undefined if all are
 * valid.
 */
export function verifyScripts(
  network: UtxoNetwork,
  tx: Tx,
  spent: readonly Spent[],
  rules: 'consensus' | 'policy',
): string | undefined {
  if (network.forkId) return verifyCash(tx, spent)
  const flags = FLAGS[network.segwit ? 'segwit' : 'plain'][rules]
  const foreign = new Transaction(tx.raw.toString('hex'))
  for (const [index, input] of foreign.inputs.entries()) {
    input.output = new Transaction.Output({
      satoshis: Number(spent[index]!.value),
      script: spent[index]!.script,
    })
  }
  for (const [index, input] of tx.ins.entries()) {
    const { value, script } = spent[index]!
    const shape = rules === 'policy' ? templates(input.script, input.witness, script) : undefined
    if (shape !== undefined) return shape
    const interpreter = new Interpreter()
    let valid = false
    try {
      valid = interpreter.verify(
        Script.fromBuffer(input.script),
        Script.fromBuffer(script),
        foreign,
        index,
        flags,
        // A copy, because the interpreter modifies the array as its stack.
        [...input.witness],
        Number(value),
      )
    } catch (error) {
      return `SCRIPT_ERR_UNKNOWN_ERROR: ${(error as Error).message}`
    }
    if (!valid) return interpreter.errstr || 'SCRIPT_ERR_EVAL_FALSE'
  }
  return undefined
}

/**
 * Checks clean stack and defined hash types for the single-key forms, which the library does not
 * check.
 */
function templates(
  scriptSig: Buffer,
  witness: readonly Buffer[],
  script: Buffer,
): string | undefined {
  const program = witnessProgram(script)
  if (isP2pkh(script)) {
    const items = pushes(scriptSig)
    if (items?.length !== 2) return 'SCRIPT_ERR_CLEANSTACK'
    return hashType(items[0]!)
  }
  if (program?.version === 0 && program.program.length === 20)
    return witness[0] ? hashType(witness[0]) : undefined
  if (isP2sh(script) && witness.length === 2) {
    const items = pushes(scriptSig)
    if (items?.length === 1 && witnessProgram(items[0]!)?.program.length === 20)
      return hashType(witness[0]!)
  }
  return undefined
}

function hashType(signature: Buffer): string | undefined {
  const type = (signature.at(-1) ?? 0) & ~0x80
  return signature.length > 0 && (type < 1 || type > 3) ? 'SCRIPT_ERR_SIG_HASHTYPE' : undefined
}

function pushes(script: Buffer): Buffer[] | undefined {
  const items: Buffer[] = []
  let at = 0
  while (at < script.length) {
    let length = script[at]!
    at += 1
    if (length === 0x4c) {
      length = script[at] ?? 0
      at += 1
    } else if (length > 0x4b) return undefined
    if (at + length > script.length) return undefined
    items.push(script.subarray(at, at + length))
    at += length
  }
  return items
}

/** Core's texts for the script errors of the library, used in reject reasons. */
const REASONS: Record<string, string> = {
  SCRIPT_ERR_EVAL_FALSE:
    'Script evaluated without error but finished with a false/empty top stack element',
  SCRIPT_ERR_EVAL_FALSE_NO_RESULT:
    'Script evaluated without error but finished with a false/empty top stack element',
  SCRIPT_ERR_EVAL_FALSE_IN_STACK:
    'Script evaluated without error but finished with a false/empty top stack element',
  SCRIPT_ERR_EQUALVERIFY: 'Script failed an OP_EQUALVERIFY operation',
  SCRIPT_ERR_CHECKSIGVERIFY: 'Script failed an OP_CHECKSIGVERIFY operation',
  SCRIPT_ERR_SIG_NULLFAIL: 'Signature must be zero for failed CHECK(MULTI)SIG operation',
  SCRIPT_ERR_NULLFAIL: 'Signature must be zero for failed CHECK(MULTI)SIG operation',
  SCRIPT_ERR_SIG_DER_INVALID_FORMAT: 'Non-canonical DER signature',
  SCRIPT_ERR_SIG_DER_HIGH_S: 'Non-canonical signature: S value is unnecessarily high',
  SCRIPT_ERR_SIG_HASHTYPE: 'Signature hash type missing or not understood',
  SCRIPT_ERR_CLEANSTACK: 'Stack size must be exactly one after execution',
  SCRIPT_ERR_WITNESS_MALLEATED: 'Witness requires empty scriptSig',
  SCRIPT_ERR_WITNESS_MALLEATED_P2SH: 'Witness requires only-redeemscript scriptSig',
  SCRIPT_ERR_WITNESS_UNEXPECTED: 'Witness provided for non-witness script',
  SCRIPT_ERR_WITNESS_PROGRAM_MISMATCH: 'Witness program hash mismatch',
  SCRIPT_ERR_WITNESS_PROGRAM_WITNESS_EMPTY: 'Witness program was passed an empty witness',
  SCRIPT_ERR_WITNESS_PUBKEYTYPE: 'Using non-compressed keys in segwit',
  SCRIPT_ERR_UNSATISFIED_LOCKTIME: 'Locktime requirement not satisfied',
  SCRIPT_ERR_INVALID_STACK_OPERATION: 'Operation not valid with the current stack size',
}

/** As in Core, an error that occurs only with the stricter flags is called non-mandatory. */
export function scriptReason(
  network: UtxoNetwork,
  tx: Tx,
  spent: readonly Spent[],
  failure: string,
): string {
  const mandatory = verifyScripts(network, tx, spent, 'consensus') !== undefined
  return `${mandatory ? 'mandatory-script-verify-flag-failed' : 'non-mandatory-script-verify-flag'} (${REASONS[failure] ?? failure})`
}
