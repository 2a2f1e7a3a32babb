import { EVENT_TYPES } from '../../../core/database/event-types.ts'
import {
  ORDER,
  STAKE,
  STAKE_TANK,
  TANK,
  WISH,
  WORKSPACE,
  wordsOf,
  type Definition,
} from './definition.ts'
import { APPROVER_COMMANDS } from './approver-commands.ts'
import { CHAIN_COMMANDS } from './chain-commands.ts'
import { DEVNET_COMMANDS } from './devnet-commands.ts'
import { POLICY_COMMANDS } from './policy-commands.ts'
import { SIGNER_COMMANDS } from './signer-commands.ts'

const apiUser = () => import('./api-user.ts')
const gasTank = () => import('./gas-tank.ts')
const books = () => import('./books.ts')
const wallets = () => import('./wallets.ts')
const backups = () => import('./backup.ts')
const panel = () => import('./console.ts')
const reserves = () => import('./reserves.ts')
const secretsKey = () => import('../secrets-key.ts')

/**
 * All commands of the operator. Parsing, help, completion and the check of the documentation all
 * use this list.
 */
export const COMMANDS: readonly Definition[] = [
  {
    usage: 'api-user create',
    summary:
      'Create an API user: enrol its key at the signer nodes of this machine, then register it at the platform.',
    options: {
      ...WISH,
      'rate-limit N': 'requests per minute (default: CUSTODY_RATE_LIMIT, itself 1000 by default)',
      'api-key KEY':
        'API key that the signer nodes already enrolled (default: a new one; required if no signer node runs on this machine, docs/enrolment.md)',
      'index I':
        'index of the sub-account, as the signer nodes printed it (required if no signer node runs on this machine)',
      'request ID':
        'ID of the control panel’s request that the API user fulfils, as the panel shows it (default: none)',
    },
    run: async () => (await apiUser()).create,
  },
  {
    usage: 'api-user list',
    summary: 'List the API users.',
    options: { 'workspace W': 'workspace to list (default: all)' },
    run: async () => (await apiUser()).list,
  },
  {
    usage: 'api-user enrol',
    summary:
      'Enrol an API key again at a signer node that missed the enrolment: with the record of the two other nodes, or with the given values.',
    options: {
      '!api-key KEY': 'API key to enrol',
      ...Object.fromEntries(
        Object.entries(WISH).map(([name, text]) => [
          name.replace('!', ''),
          name === '!public-key KEY'
            ? `${text} (default: all values from the record of two signer nodes)`
            : text,
        ]),
      ),
      'index I': 'index of the sub-account, an integer from 1',
    },
    run: async () => (await apiUser()).enrol,
  },
  {
    usage: 'api-user revoke',
    summary: 'Revoke an API key permanently, first at the signer nodes, then at the platform.',
    options: { '!api-key KEY': 'API key to revoke' },
    run: async () => (await apiUser()).revoke,
  },
  {
    usage: 'keygen',
    summary:
      'Generate a key pair: FILE (private) and FILE.pub. Never overwrites. Callers of the API need an RSA key, approvers of a policy an Ed25519 key.',
    options: {
      'type TYPE': 'type of the key: rsa (4096 bits) or ed25519 (default: rsa)',
      'out FILE': 'file for the private key (default: custody-key.pem)',
    },
    run: async () => {
      const { keygen } = await import('../keygen.ts')
      return ({ values }) => keygen(values)
    },
  },
  {
    usage: 'request <METHOD> <PATH> [BODY]',
    choices: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    summary:
      'Send a signed request to the running platform; exit 2 if its sequence_id was used before with another payload.',
    args: {
      METHOD: 'GET, POST, PUT, PATCH or DELETE',
      PATH: 'path with its query, such as /dac/v1/wallets',
      BODY: 'JSON body (default: none)',
    },
    options: {
      'api-key KEY': 'API key of the caller (default: CUSTODY_API_KEY)',
      'key FILE': 'file with the RSA private key of the caller (default: CUSTODY_KEY)',
      'url URL': 'base URL of the platform (default: the platform that runs on CUSTODY_HOME)',
      'print-token': 'print the JWT of the request instead of sending the request',
      'until FIELD=VALUE':
        'field and value to wait for: repeat a GET every second until the response has them, such as data.0.status=confirmed',
      'timeout SECONDS': 'longest wait of --until, in seconds (default: 120)',
    },
    run: async () => {
      const { sendRequest } = await import('../request.ts')
      return ({ home, words, values }) => sendRequest(home, words, values)
    },
  },
  {
    usage: 'verify-address <ASSET> <ADDRESS>',
    summary:
      'Verify offline that a deposit address belongs to the sub-account of a trust file; exit 1 if not.',
    args: { ASSET: 'asset of the address, such as BTC', ADDRESS: 'address to verify' },
    options: {
      '!keys FILE': 'file with a saved response of GET /dac/v1/keys',
      '!trust FILE': 'trust file from the operator',
      'path S/C/I':
        'derivation path SUB-ACCOUNT/CHAIN/INDEX of the address, such as 1/0/7 (default: search up to --max-index)',
      'max-index N': 'highest index to search, up to 10000000 (default: 1000)',
    },
    run: async () => {
      const { verifyAddressCommand } = await import('../verify-address.ts')
      return ({ words, values }) => verifyAddressCommand(words, values)
    },
  },
  {
    usage: 'prepaid-fee adjust',
    summary:
      'Add an amount to the prepaid fee account of a workspace, or subtract it. The balance never falls below zero.',
    options: { ...WORKSPACE, '!amount USD': 'amount in USD; to subtract: --amount=-12.5' },
    run: async () => (await books()).prepaidAdjust,
  },
  {
    usage: 'prepaid-fee show',
    summary: 'Print the balance, the tier and the 30-day volume of a prepaid fee account, in USD.',
    options: WORKSPACE,
    run: async () => (await books()).prepaidShow,
  },
  {
    usage: 'gas-tank list',
    summary: 'List the gas tanks of a workspace, with balance, status and address.',
    options: WORKSPACE,
    run: async () => (await gasTank()).list,
  },
  {
    usage: 'gas-tank address',
    summary: 'Print the address at which a gas tank is filled.',
    options: TANK,
    run: async () => (await gasTank()).address,
  },
  {
    usage: 'gas-tank drain',
    summary:
      'Send a gas tank’s full balance, less the network fee, to an address. Records the order at the signer nodes of this machine first.',
    options: { ...TANK, '!to ADDRESS': 'address that receives the balance', ...ORDER },
    run: async () => (await gasTank()).drain,
  },
  {
    usage: 'gas-tank stake',
    summary:
      'Stake TRX of a gas tank. The energy is delegated to transfers when that is cheaper than burning TRX.',
    options: { ...STAKE_TANK, ...STAKE, ...ORDER },
    run: async () => (await gasTank()).stake,
  },
  {
    usage: 'gas-tank unstake',
    summary:
      'Unstake TRX of a gas tank. "gas-tank release" returns it to the tank after a cooldown of 14 days.',
    options: { ...STAKE_TANK, ...STAKE, ...ORDER },
    run: async () => (await gasTank()).unstake,
  },
  {
    usage: 'gas-tank release',
    summary: 'Return unstaked TRX whose cooldown has ended to the balance of the gas tank.',
    options: { ...STAKE_TANK, ...ORDER },
    run: async () => (await gasTank()).release,
  },
  {
    usage: 'gas-tank set',
    summary: 'Set the threshold and the limits of a gas tank. Omitted options keep their value.',
    options: {
      ...TANK,
      'threshold COINS':
        'balance in native coins below which the tank is low; 0 turns the warning off',
      'fee-cap COINS': 'highest fee of one transaction, in native coins, or none',
      'max-gas-price RATE':
        'highest fee rate, in the network’s unit (such as gwei), at which transactions are sent; above it they wait; or none',
    },
    run: async () => (await gasTank()).set,
  },
  ...DEVNET_COMMANDS,
  ...CHAIN_COMMANDS,
  {
    usage: 'aml refresh-ofac <FILE>',
    summary: 'Replace the list of sanctioned addresses.',
    args: {
      FILE: 'sdn_advanced.xml or sdn.xml of OFAC, a list of this platform, or a text file with one address per line',
    },
    options: {
      'asset A': 'asset of the addresses, if the lines of a text file do not name it',
      'published YYYY-MM-DD': 'publication date of the list (required for a text file)',
      force: 'install the list even if it is older or much smaller than the current one',
    },
    run: async () => {
      const { refreshOfac } = await import('../ofac.ts')
      return ({ home, words, values }) =>
        refreshOfac(home, words[0], {
          asset: (values['asset'] as string | undefined) ?? null,
          published: (values['published'] as string | undefined) ?? null,
          force: values['force'] === true,
        })
    },
  },
  {
    usage: 'aml release',
    summary:
      'Release a deposit that is held because one of its senders is unknown. Known senders are still screened.',
    options: { '!transaction ID': 'ID of the deposit' },
    run: async () => (await wallets()).amlRelease,
  },
  {
    usage: 'sweep set',
    summary:
      'Set when deposit addresses are swept, for all networks, one network or one asset. Omitted options keep their value.',
    options: {
      'network N': 'network of the rule (default: all; not together with --asset)',
      'asset A': 'asset of the rule (default: all)',
      'cost-multiple M':
        'multiple of the network fee that a balance must exceed, or none to inherit the value of the more general rule',
      'min-amount COINS':
        'smallest balance to sweep, in units of --asset, or none to inherit the value of the more general rule',
    },
    run: async () => (await wallets()).sweepSet,
  },
  {
    usage: 'sweep show',
    summary: 'Print the sweep rule of each asset, and the sweeps that wait.',
    run: async () => (await wallets()).sweepShow,
  },
  {
    usage: 'wallet set',
    summary:
      'Set a wallet to active or inactive. An inactive wallet accepts no new addresses, transfers, stakes or forwards; deposits are credited.',
    options: {
      'id ID': 'ID of the wallet (required without --workspace, --sub-account and --asset)',
      'workspace W': 'workspace of the wallet',
      'sub-account S': 'sub-account of the wallet',
      'asset A': 'asset of the wallet',
      '!status STATUS': 'new status: active or inactive',
      'reason TEXT': 'reason to record with the change, at most 500 characters (default: none)',
    },
    run: async () => (await wallets()).walletSet,
  },
  {
    usage: 'write-off',
    summary:
      'Write off what a wallet is below zero since a reorganisation removed a deposit that it had spent, so that it can pay again.',
    options: {
      'id ID': 'ID of the wallet (required without --workspace, --sub-account and --asset)',
      'workspace W': 'workspace of the wallet',
      'sub-account S': 'sub-account of the wallet',
      'asset A': 'asset of the wallet',
      '!comment TEXT': 'reason to record in the audit log, at most 500 characters',
    },
    run: async () => (await wallets()).writeOff,
  },
  {
    usage: 'wallet list',
    summary: 'List the wallets with their status; --json includes each status change.',
    options: { 'workspace W': 'workspace to list (default: all)' },
    run: async () => (await wallets()).walletList,
  },
  {
    usage: 'statement',
    summary: 'Write the statements of wallets or gas tanks to a CSV file, with every movement.',
    options: {
      ...WORKSPACE,
      'sub-account S': 'sub-account of the wallet (required for a wallet)',
      'asset A': 'asset of the wallet, or the native coin of the gas tank (default: all)',
      'account KIND': 'wallet or gas_tank (default: wallet)',
      'from TIME': 'day or time in UTC like 2026-01-31T12:00:00Z (default: the beginning)',
      'to TIME': 'day or time at which the statement ends, exclusive (default: now)',
      '!out FILE': 'file to write; never overwritten',
    },
    run: async () => (await wallets()).statement,
  },
  {
    usage: 'waiting',
    summary:
      'List pending transactions, oldest first, with the reason why the last attempt made no progress.',
    options: {
      'state STATE': 'state to list, such as SIGNING (default: all)',
      'network N': 'network to list (default: all)',
      'workspace W': 'workspace to list (default: all)',
    },
    run: async () => (await books()).waiting,
  },
  {
    usage: 'suspense list',
    summary: 'List the deposits that belong to no wallet, with their tags.',
    run: async () => (await books()).suspenseList,
  },
  {
    usage: 'suspense assign',
    summary: 'Credit a deposit in suspense to the wallet of the sub-account that owns its address.',
    options: { '!id ID': 'ID of the deposit, as "suspense list" prints it' },
    run: async () => (await books()).suspenseAssign,
  },
  {
    usage: 'suspense adopt',
    summary:
      'Record a surplus that the audit found (coins at an own address that the ledger lacks) as a deposit.',
    options: {
      '!asset A': 'asset of the surplus',
      '!address ADDRESS': 'own address with the surplus, as "audit" prints it',
      '!amount COINS': 'full amount of the surplus, in units of the asset',
      'txid HASH':
        'hash of the transaction that paid it, to record with the deposit (default: none)',
    },
    run: async () => (await books()).suspenseAdopt,
  },
  {
    usage: 'listen',
    summary:
      'Print the events of the running platform as they occur, until Ctrl-C; with --forward also post them, signed, to a URL.',
    options: {
      'forward URL':
        'URL to post the events to, such as http://127.0.0.1:3000/webhooks (default: none)',
      'events NAMES': 'events, comma-separated, such as invoice.*,deposit.confirmed (default: all)',
      'workspace W': 'workspace of the events (default: all)',
    },
    run: async () => (await import('./listen.ts')).listenRun,
  },
  {
    usage: 'trigger <EVENT>',
    choices: EVENT_TYPES,
    summary:
      'Send a sample event, marked as a test, to webhooks. Local chains only; exit 1 if a webhook does not accept it.',
    args: { EVENT: 'event type, such as deposit.confirmed' },
    options: {
      'webhook ID…':
        'ID of a webhook to send to, regardless of its events; repeat for several (default: all enabled webhooks with the event)',
      'workspace W': 'workspace of the webhooks (default: all)',
    },
    run: async () => (await import('./trigger.ts')).triggerRun,
  },
  {
    usage: 'console invite',
    summary:
      'Print a single-use link, valid for 7 days, by which a person joins the control panel of a workspace.',
    options: {
      ...WORKSPACE,
      '!role ROLE': 'role of the person: owner, admin, operator or viewer',
      'email E': 'only e-mail address that may accept the invitation (default: any)',
    },
    run: async () => (await panel()).invite,
  },
  {
    usage: 'console reset',
    summary:
      'Print a single-use link, valid for one hour, by which a person who lost all sign-in factors sets new ones.',
    options: { '!email E': 'e-mail address of the person' },
    run: async () => (await panel()).reset,
  },
  {
    usage: 'console people',
    summary: 'List the users of the control panel, with workspace and role.',
    options: { 'workspace W': 'workspace to list (default: all)' },
    run: async () => (await panel()).people,
  },
  {
    usage: 'audit-log export',
    summary:
      'Write the audit log of a workspace to a file, one entry per line, and print the newest hash.',
    options: { ...WORKSPACE, '!out FILE': 'file to write; never overwritten' },
    run: async () => (await panel()).exportLog,
  },
  {
    usage: 'audit-log verify [FILE]',
    summary:
      'Verify that no entry of an audit log was changed, removed or moved: offline in an exported file, or of all workspaces in the database; exit 1 if one was.',
    args: { FILE: 'exported audit log (default: all logs in the database)' },
    options: {
      'head HASH':
        'with FILE: newest hash of an earlier export, which detects a completely rewritten log (default: not checked)',
      'heads FILE':
        'without FILE: JSON output of an earlier verification, which detects shortened and rewritten logs (default: not checked)',
    },
    run: async () => (await panel()).verify,
  },
  {
    usage: 'audit',
    summary:
      'Compare the ledger with the chains; exit 1 on any difference, or if nothing was compared.',
    run: async () => (await books()).audit,
  },
  {
    usage: 'reserves publish',
    summary:
      'Publish a statement of reserves and liabilities, signed by the signer nodes; exit 1 if liabilities exceed reserves.',
    run: async () => (await reserves()).publish,
  },
  {
    usage: 'reserves list',
    summary: 'List the published statements of reserves.',
    run: async () => (await reserves()).list,
  },
  {
    usage: 'reserves show [ID]',
    summary: 'Print a statement of reserves with its totals.',
    args: { ID: 'ID of the statement (default: the newest)' },
    options: {
      'statement FILE':
        'file to write the published statement to; never overwritten (default: none)',
      'holdings FILE':
        'file to write the confidential list of addresses and keys to; never overwritten (default: none)',
    },
    run: async () => (await reserves()).show,
  },
  {
    usage: 'verify-reserves [FILE]',
    summary:
      'Verify offline who signed a statement of reserves, and that it includes the balance of a proof.',
    args: { FILE: 'proof of a sub-account’s balance (default: verify the statement alone)' },
    options: {
      '!statement FILE': 'published statement',
      '!trust FILE': 'trust file from the operator',
      'holdings FILE':
        'list of addresses, each of which is derived from its key and compared (default: not checked)',
    },
    run: async () => {
      const { verifyReservesCommand } = await import('../verify-reserves.ts')
      return ({ words, values }) => verifyReservesCommand(words, values)
    },
  },
  {
    usage: 'reconcile',
    summary:
      'After the restore of an older backup, adopt the records of the signer nodes that the database lacks, then compare the ledger with the chains.',
    options: {
      'dry-run': 'only report what would be adopted; nothing is changed',
      'gap N': 'deposit addresses to watch beyond the last known one (default: 20, at most 1000)',
      'wait SECONDS': 'longest wait for scanners and confirmations, in seconds (default: 600)',
      'scan-from NETWORK=HEIGHT':
        'first block of a network that was never scanned; comma-separated for several networks',
    },
    run: async () => {
      const { reconcileBooks } = await import('../books/reconcile-cli.ts')
      return ({ home, values }) => reconcileBooks(home, values)
    },
  },
  {
    usage: 'rescan <NETWORK>',
    summary:
      'Read heights of a network again and credit the deposits that the scan missed. Known deposits do not change.',
    args: { NETWORK: 'network to read, such as ETH' },
    options: {
      'from H':
        'first height: a block height, ledger index (XRP), ledger sequence (XLM) or slot (SOL) (required without --stop)',
      'to H':
        'last height to read (default: the last one that the scan has read, or the end of an interrupted rescan)',
      stop: 'stop the running rescan instead of starting one',
    },
    run: async () => {
      const { rescan } = await import('../books/rescan-cli.ts')
      return ({ home, words, values }) => rescan(home, words[0] as string, values)
    },
  },
  {
    usage: 'backup',
    summary:
      'Write database, secrets and the signer nodes of this machine to a new folder with a manifest.',
    options: {
      '!out DIR': 'folder to create; never overwritten',
      'recovery-key FILE':
        'public recovery key that encrypts the secrets (required without --without-secrets)',
      'signing-key FILE':
        'key that signs the manifest (default: FILE.sign next to the FILE.pub of --recovery-key, if it exists)',
      'without-secrets': 'omit the secrets from the backup',
      'without-nodes': 'omit the signer nodes from the backup; their operators back them up',
    },
    run: async () => (await backups()).backup,
  },
  {
    usage: 'backup-key',
    summary:
      'Generate a recovery key for backups: FILE (secret, to keep offline), FILE.pub and FILE.sign.',
    options: {
      '!out FILE': 'file for the recovery secret; never overwritten',
      'from FILE':
        'existing recovery secret, from which only FILE.pub and FILE.sign are written (default: a new one)',
    },
    run: async () => (await backups()).recoveryKey,
  },
  {
    usage: 'restore',
    summary:
      'Restore a backup to an empty home. Operators of signer nodes on other hosts restore them separately.',
    options: {
      '!in DIR': 'folder of the backup',
      verify:
        'only check the backup, without restoring it; exit 0: authentic, 2: undamaged but not proved authentic',
      'recovery-secret FILE':
        'recovery secret, which proves the signature and decrypts the secrets (required without --verify or --without-secrets)',
      'recovery-key FILE':
        'own copy of the public recovery key, which proves the signature with --verify or --without-secrets',
      'manifest-sha256 HASH':
        'SHA-256 of the manifest as "backup" printed it, which authenticates a backup without a signature',
      'without-secrets': 'do not restore the secrets',
      'node-secrets 1=FILE,2=FILE,3=FILE':
        'recovery secrets of the signer nodes, whose homes are then restored too; local only (default: none)',
      'wal DIR': 'folder of the archived WAL to replay after the backup (default: none)',
      'until TIME':
        'time at which the replay of --wal ends, such as 2026-01-31T12:00:00Z (default: its end)',
    },
    run: async () => (await backups()).restore,
  },
  {
    usage: 'upgrade',
    summary:
      'Compare the migrations of this version with the database, or apply them: a start of this version applies them too, if it has the URL of their owner.',
    options: {
      check: 'only compare, without changes; exit 1 if a newer version has changed the database',
      apply:
        'apply the migrations and the rights of the platform’s role, with DATABASE_MIGRATION_URL',
    },
    run: async () => (await import('../upgrade.ts')).upgrade,
  },
  {
    usage: 'doctor',
    summary:
      'Check endpoints, signer nodes, database, disk, certificates, prices and the background loops, and print what to do; ' +
      'exit 1 if something is wrong.',
    run: async () => {
      const { doctor } = await import('../doctor/doctor.ts')
      return () => doctor()
    },
  },
  {
    usage: 'completion <SHELL>',
    choices: ['bash', 'zsh', 'fish'],
    summary: 'Print the completion script of a shell (docs/operating.md).',
    args: { SHELL: 'bash, zsh or fish' },
    run: async () => (await import('./completion.ts')).completionRun(COMMANDS),
  },
  {
    usage: 'secrets-key status',
    summary:
      'Print which provider wraps the secrets key, which encrypts the secrets in the database.',
    run: async () => (await secretsKey()).status,
  },
  {
    usage: 'secrets-key wrap',
    summary:
      'Wrap the secrets key with a key-encryption key, for the first time or with another one (docs/production/keys.md).',
    options: {
      '!kek PROVIDER': 'key-encryption key: KIND:name=value,… or @FILE with the same as JSON',
    },
    run: async () => (await secretsKey()).wrap,
  },
  {
    usage: 'secrets-key change',
    summary:
      'Encrypt all secrets of the database with another key. All processes of the platform must be stopped.',
    options: {
      '!new-key FILE':
        'file with the new key: 32 bytes, their base64, or a key wrapped by a provider',
    },
    run: async () => (await secretsKey()).change,
  },
  ...POLICY_COMMANDS,
  ...APPROVER_COMMANDS,
  ...SIGNER_COMMANDS,
]

/**
 * Returns the definition of the command with these words, or all definitions of a group if a single
 * word names a group.
 */
export function commandsFor(words: readonly string[]): readonly Definition[] {
  return COMMANDS.filter((definition) => {
    const own = wordsOf(definition)
    return (
      own.every((word, at) => words[at] === undefined || words[at] === word) && words.length > 0
    )
  })
}
