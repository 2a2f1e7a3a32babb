export const HELP = `Usage: npx custody COMMAND [options]
       npx custody COMMAND --help         that command alone
       --json prints one JSON object as the last line; --field NAME that field of it alone (data.0.id: of the first one)

  api-user create --workspace W --sub-account S --role full|read-only --public-key FILE [--rate-limit N] [--trust-file FILE]
                  [--api-key KEY --index I]       of a caller that the signer nodes know already (docs/enrolment.md)
                                          FILE: what the caller pins to check addresses by itself
  api-user list [--workspace W]
  api-user enrol --api-key KEY            again, at a signer node that was away: as the two others tell it, or as typed
  api-user revoke --api-key KEY
  keygen [--out FILE]                     an RSA-4096 pair: FILE (private) and FILE.pub
  request METHOD PATH [BODY] --api-key KEY --key FILE [--url URL] [--print-token] [--until FIELD=VALUE [--timeout SECONDS]]
                                          sends a signed request to the running platform; KEY and FILE may stand in
                                          CUSTODY_API_KEY and CUSTODY_KEY; --print-token prints its JWT and sends nothing;
                                          --until asks again (GET only, 120 s) until a field of the answer has that value
  verify-address ASSET ADDRESS --keys FILE --trust FILE [--path S/C/I] [--max-index N]
                                          offline: is this address ours? FILEs: a saved GET /dac/v1/keys, the trust file
  prepaid-fee adjust --workspace W --amount USD       tops up, or takes: --amount=-12.5; never below zero
  prepaid-fee show --workspace W
  gas-tank list --workspace W
  gas-tank address --workspace W --network ETH
  gas-tank drain --workspace W --network ETH --to ADDRESS
  gas-tank stake|unstake|release --workspace W --network TRX [--amount COINS --resource ENERGY|BANDWIDTH]
                                          staked energy is lent to transfers where that is cheaper than TRX
  gas-tank set --workspace W --network ETH [--threshold COINS] [--fee-cap COINS|none] [--max-gas-price RATE|none]
  devnet fund ASSET ADDRESS AMOUNT [--tag T]
  devnet mine NETWORK N
  devnet reorg NETWORK N
  devnet fault NETWORK drop-answer|reject|lag|down|heal
  devnet risk ADDRESS SEVERE|HIGH|MEDIUM|LOW|none
                                          what the local screening providers say of an address
  devnet fault AML|CHAINALYSIS|ELLIPTIC|TRM down|drop-answer|lag|reject|malformed|empty|unknown|rate-limited|revoked|heal
  devnet price COIN USD [--source COINGECKO|KRAKEN]   what the local sources of prices say
  devnet fault PRICES|COINGECKO|KRAKEN down|lag|malformed|stale|rate-limited|heal
  devnet drop NETWORK HASH                a waiting EVM transaction is forgotten by its node
  devnet congestion NETWORK FEE_RATE          blocks take only what pays at least that much; 0 ends it
  devnet clock +14d                       moves the time of Tron's blocks, and nothing else's (s, m, h, d)
  aml refresh-ofac FILE [--asset A] [--published YYYY-MM-DD] [--force]
                                          replaces the list of sanctioned addresses: OFAC's XML, or one address a line
  aml release --transaction ID            lets one deposit go on that is held because a sender of it is unknown
  sweep set [--network N | --asset A] [--cost-multiple M|none] [--min-amount COINS|none]
                                          deposit addresses are swept when they hold more than M times the network fee
  sweep show
  wallet set --id ID --status active|inactive [--reason TEXT]     or --workspace W --sub-account S --asset A
                                          inactive: no new addresses, transfers, stakes or forwards; deposits are credited
  wallet list [--workspace W]             with each change of a status
  suspense list                           deposits that belong to no wallet, with their tags
  suspense assign --id ID                 credits one to the wallet of the account that holds it
  audit                                   ledger against chains; exit 1 on any difference
  reconcile [--dry-run] [--gap N] [--wait SECONDS] [--scan-from NETWORK=HEIGHT,…]
                                          after an older backup: adopts what the signer nodes have recorded, then audits
  doctor                                  tests each configured endpoint and says what is wrong
  signer status
  signer refresh [--workspace W]          new shares of every key, or of one workspace's
  signer backup --node N --out FILE       a node's shares, encrypted to its recovery key
  signer restore --node N --in FILE --recovery-secret FILE
                                          on a signer node's own host (docs/enrolment.md):
  signer enrol --home HOME --workspace W --sub-account S --role full|read-only --public-key FILE [--api-key KEY] [--trust-file FILE]
  signer revoke --home HOME --api-key KEY
  signer drain --home HOME --workspace W --network ETH --to ADDRESS [--order ID]
  signer stake|unstake|release --home HOME --workspace W --network TRX [--amount COINS --resource R] [--order ID]

The platform is found through CUSTODY_HOME (default ./.custody).`

/** A command of the help text: its first line and the deeper ones that belong to it. */
const BLOCK = /^ {2}\S.*(?:\n {4,}.*)*/gm

/** Whether the words that were typed lead to a command: `drain` to `stake|unstake|drain`, and anything where a value stands. */
function leads(block: string, words: readonly string[]): boolean {
  const [signature = ''] = block.trim().split(/\n| {2,}/, 1)
  const steps = signature.split(' ')
  for (const [at, word] of words.entries()) {
    const step = steps[at]
    if (step === undefined || /^[-[A-Z]/.test(step)) return at > 0
    if (!step.split('|').includes(word)) return false
  }
  return true
}

/** The lines of the help text that are about these words: one command, or all of its group. Null: there is no such command. */
export function helpOf(words: readonly string[]): string | null {
  const blocks = (HELP.match(BLOCK) ?? []).filter((block) => leads(block, words))
  return blocks.length === 0 ? null : `Usage: npx custody\n${blocks.join('\n')}`
}

/** What to say of words that are no command: the group's commands where the first word names a group. */
export function unknownCommand(words: readonly string[]): string {
  const group = words.length > 1 ? helpOf(words.slice(0, 1)) : null
  return `unknown command: ${words.join(' ')}\n${group ?? 'npx custody --help lists all commands'}`
}
