import { EVENT_TYPES } from '../../database/event-types.ts'
import { ORDER, STAKE, TANK, WISH, WORKSPACE, wordsOf, type Definition } from './definition.ts'
import { SIGNER_COMMANDS } from './signer-commands.ts'
import type { Run } from './typed.ts'

/**
 * Every command of the operator's: the one place from which parsing, help and its check in the
 * documents come.
 */
const apiUser = () => import('./api-user.ts')
const gasTank = () => import('./gas-tank.ts')
const books = () => import('./books.ts')
const wallets = () => import('./wallets.ts')
const backups = () => import('./backup.ts')
const panel = () => import('./console.ts')
const reserves = () => import('./reserves.ts')
const secretsKey = () => import('../secrets-key.ts')
const devnet = (action: string) => async (): Promise<Run> => {
  const { devnetCommand } = await import('../devnet.ts')
  return ({ home, words, values }) => devnetCommand(home, [action, ...words], values)
}

export const COMMANDS: readonly Definition[] = [
  {
    usage: 'api-user create',
    summary: 'makes an API key and enrols it at the signer nodes of this machine',
    options: {
      ...WISH,
      'rate-limit N': 'requests a minute',
      'api-key KEY': 'of a caller whom the signer nodes know already (docs/enrolment.md)',
      'index I': 'the sub-account’s index, as the nodes printed it',
      'request ID':
        'request of the control panel whose label, addresses and owner the API user gets, as its command shows it',
    },
    run: async () => (await apiUser()).create,
  },
  {
    usage: 'api-user list',
    summary: 'lists API users',
    options: { 'workspace W': 'of one workspace' },
    run: async () => (await apiUser()).list,
  },
  {
    usage: 'api-user enrol',
    summary: 'again, at a signer node that was away: as the two others tell it, or as typed',
    options: {
      '!api-key KEY': 'the API key',
      ...Object.fromEntries(
        Object.entries(WISH).map(([name, text]) => [name.replace('!', ''), text]),
      ),
      'index I': 'the sub-account’s index',
    },
    run: async () => (await apiUser()).enrol,
  },
  {
    usage: 'api-user revoke',
    summary: 'at the signer nodes first, then at the platform',
    options: { '!api-key KEY': 'the API key' },
    run: async () => (await apiUser()).revoke,
  },
  {
    usage: 'keygen',
    summary: 'an RSA-4096 pair: FILE (private) and FILE.pub; never overwrites',
    options: {
      'out FILE': 'custody-key.pem by default',
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
    options: {
      'api-key KEY': 'or CUSTODY_API_KEY',
      'key FILE': 'private key, or CUSTODY_KEY',
      'url URL': 'of another platform than this home’s',
      'print-token': 'prints the request’s JWT and sends nothing',
      'until FIELD=VALUE':
        'GET: asks again until that field of the answer has that value, such as data.0.status=confirmed',
      'timeout SECONDS': 'how long --until asks; 120 by default',
    },
    run: async () => {
      const { sendRequest } = await import('../request.ts')
      return ({ home, words, values }) => sendRequest(home, words, values)
    },
  },
  {
    usage: 'verify-address <ASSET> <ADDRESS>',
    summary: 'offline: is this address ours?',
    options: {
      '!keys FILE': 'a saved GET /dac/v1/keys',
      '!trust FILE': 'the trust file that the operator handed out',
      'path S/C/I': 'the address’s path, where it is known',
      'max-index N': 'how far to search without it; 1000 by default',
    },
    run: async () => {
      const { verifyAddressCommand } = await import('../verify-address.ts')
      return ({ words, values }) => verifyAddressCommand(words, values)
    },
  },
  {
    usage: 'prepaid-fee adjust',
    summary: 'tops up, or takes; never below zero',
    options: { ...WORKSPACE, '!amount USD': 'to take: --amount=-12.5' },
    run: async () => (await books()).prepaidAdjust,
  },
  {
    usage: 'prepaid-fee show',
    summary: 'balance, tier, and volume of 30 days',
    options: WORKSPACE,
    run: async () => (await books()).prepaidShow,
  },
  {
    usage: 'gas-tank list',
    summary: 'tanks of a workspace, with balance and status',
    options: WORKSPACE,
    run: async () => (await gasTank()).list,
  },
  {
    usage: 'gas-tank address',
    summary: 'where a tank is filled',
    options: TANK,
    run: async () => (await gasTank()).address,
  },
  {
    usage: 'gas-tank drain',
    summary: 'sends all that a tank holds to an address',
    options: { ...TANK, '!to ADDRESS': 'where to', ...ORDER },
    run: async () => (await gasTank()).drain,
  },
  {
    usage: 'gas-tank stake',
    summary: 'staked energy is lent to transfers where that is cheaper than TRX',
    options: { ...TANK, ...STAKE, ...ORDER },
    run: async () => (await gasTank()).stake,
  },
  {
    usage: 'gas-tank unstake',
    summary: 'the TRX comes back after 14 days',
    options: { ...TANK, ...STAKE, ...ORDER },
    run: async () => (await gasTank()).unstake,
  },
  {
    usage: 'gas-tank release',
    summary: 'takes back what has cooled down',
    options: { ...TANK, ...ORDER },
    run: async () => (await gasTank()).release,
  },
  {
    usage: 'gas-tank set',
    summary: 'a tank’s threshold and limits; what is not named stays',
    options: {
      ...TANK,
      'threshold COINS': 'below it the tank is low',
      'fee-cap COINS': 'most for one transaction, or none',
      'max-gas-price RATE': 'above it transactions wait, or none',
    },
    run: async () => (await gasTank()).set,
  },
  {
    usage: 'devnet fund <ASSET> <ADDRESS> <AMOUNT>',
    summary: 'coins on a local chain, already mined',
    options: { 'tag T': 'destination tag or memo' },
    run: devnet('fund'),
  },
  { usage: 'devnet mine <NETWORK> <BLOCKS>', summary: 'mines blocks', run: devnet('mine') },
  {
    usage: 'devnet reorg <NETWORK> <DEPTH>',
    summary: 'takes the last blocks back',
    run: devnet('reorg'),
  },
  {
    usage: 'devnet fault <WHAT> <MODE>',
    summary:
      'NETWORK: drop-answer, reject, lag, down, heal. ' +
      'AML, CHAINALYSIS, ELLIPTIC, TRM: down, drop-answer, lag, reject, malformed, empty, unknown, rate-limited, revoked, heal. ' +
      'PRICES (COINGECKO, KRAKEN, BINANCE): down, lag, malformed, stale, rate-limited, heal. ' +
      'KRAKEN, BINANCE also: drop-answer, unknown-answer, stalled-answer, duplicate-fill, clock-skew, stuck-withdrawal, hidden-order, ' +
      'changed-address',
    run: devnet('fault'),
  },
  {
    usage: 'devnet risk <ADDRESS> <LEVEL>',
    summary:
      'what the local screening providers say of an address: SEVERE, HIGH, MEDIUM, LOW, none',
    run: devnet('risk'),
  },
  {
    usage: 'devnet price <COIN> <USD>',
    summary: 'what the local sources of prices say',
    options: { 'source S': 'one of them alone: COINGECKO, KRAKEN or BINANCE' },
    run: devnet('price'),
  },
  {
    usage: 'devnet venue key',
    summary: 'a new account at a local exchange, with play money, and a key of it',
    options: {
      '!exchange E': 'kraken or binance',
      'permissions LIST': 'of query,trade,deposit,withdraw; all of them if not named',
      'no-withdraw': 'a key that may not withdraw',
      'balances LIST': 'in place of the usual play money: BTC=1,USD=5000',
      'account-of KEY': 'another key of the account that has this one',
      'nonce-window MS': 'how late a nonce may come; 0 if not named',
      unlimited: 'its calls are not counted',
    },
    run: devnet('venue key'),
  },
  {
    usage: 'devnet venue revoke <KEY>',
    summary: 'a key is not known any more',
    run: devnet('venue revoke'),
  },
  {
    usage: 'devnet venue address <KEY> <ASSET> <ADDRESS>',
    summary: 'registers where withdrawals of a key’s account may go',
    options: { 'name NAME': 'by which it is named', 'tag T': 'destination tag or memo' },
    run: devnet('venue address'),
  },
  {
    usage: 'devnet venue urls',
    summary: 'where the local exchanges are',
    run: devnet('venue urls'),
  },
  {
    usage: 'devnet drop <NETWORK> <HASH>',
    summary: 'a waiting EVM transaction is forgotten by its node',
    run: devnet('drop'),
  },
  {
    usage: 'devnet congestion <NETWORK> <FEE_RATE>',
    summary: 'blocks take only what pays at least that much; 0 ends it',
    run: devnet('congestion'),
  },
  {
    usage: 'devnet urls',
    summary: 'where each local chain is, with an example that can be pasted',
    run: devnet('urls'),
  },
  {
    usage: 'devnet contract <NETWORK> <TICKER>',
    summary:
      'where a token’s local contract stands, for the asset registry (docs/adding-a-chain.md)',
    run: devnet('contract'),
  },
  {
    usage: 'devnet clock <ADVANCE>',
    summary: 'moves the time of Tron’s blocks, and nothing else’s: +14d, +3h, +15m, +20s',
    run: devnet('clock'),
  },
  { usage: 'devnet info', summary: 'what the local chains say of themselves', run: devnet('info') },
  {
    usage: 'aml refresh-ofac <FILE>',
    summary: 'replaces the list of sanctioned addresses: OFAC’s XML, or one address a line',
    options: {
      'asset A': 'of a list of bare addresses',
      'published YYYY-MM-DD': 'its date',
      force: 'also where much of the list would be gone',
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
    summary: 'lets one deposit go on that is held because a sender of it is unknown',
    options: { '!transaction ID': 'the deposit' },
    run: async () => (await wallets()).amlRelease,
  },
  {
    usage: 'sweep set',
    summary: 'deposit addresses are swept when they hold more than a multiple of the network fee',
    options: {
      'network N': 'for one network',
      'asset A': 'for one asset',
      'cost-multiple M': 'the multiple, or none',
      'min-amount COINS': 'the least amount, or none',
    },
    run: async () => (await wallets()).sweepSet,
  },
  {
    usage: 'sweep show',
    summary: 'what holds for each asset, and what waits',
    run: async () => (await wallets()).sweepShow,
  },
  {
    usage: 'wallet set',
    summary: 'inactive: no new addresses, transfers, stakes or forwards; deposits are credited',
    options: {
      'id ID': 'the wallet, or',
      'workspace W': 'its workspace,',
      'sub-account S': 'its sub-account',
      'asset A': 'and its asset',
      '!status STATUS': 'active or inactive',
      'reason TEXT': 'kept with the change',
    },
    run: async () => (await wallets()).walletSet,
  },
  {
    usage: 'wallet list',
    summary: 'wallets, with each change of a status',
    options: { 'workspace W': 'of one workspace' },
    run: async () => (await wallets()).walletList,
  },
  {
    usage: 'waiting',
    summary:
      'List transactions under way, oldest first, with the reason why the last attempt made no progress.',
    options: {
      'state STATE': 'of one state, such as SIGNING',
      'network N': 'of one network',
      'workspace W': 'of one workspace',
    },
    run: async () => (await books()).waiting,
  },
  {
    usage: 'suspense list',
    summary: 'deposits that belong to no wallet, with their tags',
    run: async () => (await books()).suspenseList,
  },
  {
    usage: 'suspense assign',
    summary: 'credits one to the wallet of the account that holds it',
    options: { '!id ID': 'the deposit, as suspense list prints it' },
    run: async () => (await books()).suspenseAssign,
  },
  {
    usage: 'suspense adopt',
    summary: 'makes a deposit of what an address holds beyond the books: a surplus of the audit',
    options: {
      '!asset A': 'the asset',
      '!address ADDRESS': 'ours, as the audit prints it',
      '!amount COINS': 'all of the surplus',
      'txid HASH': 'shown as the deposit’s transaction',
    },
    run: async () => (await books()).suspenseAdopt,
  },
  {
    usage: 'listen',
    summary:
      'shows events as they come, and posts them, signed, to a developer’s machine; Ctrl-C ends it',
    options: {
      'forward URL': 'where to post them, such as http://127.0.0.1:3000/webhooks',
      'events NAMES': 'such as invoice.*,deposit.confirmed',
      'workspace W': 'of one workspace',
    },
    run: async () => (await import('./listen.ts')).listenRun,
  },
  {
    usage: 'trigger <EVENT>',
    choices: EVENT_TYPES,
    summary:
      'Send an event that did not happen, marked as a test, to webhooks. Local chains only; exit 1 if a webhook does not take it.',
    options: {
      'webhook ID…':
        'webhook to send to, whatever it listens to; repeat the option for several. Default: all that listen to the event',
      'workspace W': 'workspace of the webhooks',
    },
    run: async () => (await import('./trigger.ts')).triggerRun,
  },
  {
    usage: 'console invite',
    summary:
      'a link by which somebody joins the control panel, once; also where no owner can sign in',
    options: {
      ...WORKSPACE,
      '!role ROLE': 'owner, admin, operator or viewer',
      'email E': 'who alone may take it',
    },
    run: async () => (await panel()).invite,
  },
  {
    usage: 'console reset',
    summary: 'a link by which a person who lost every factor sets new ones',
    options: { '!email E': 'whose' },
    run: async () => (await panel()).reset,
  },
  {
    usage: 'console people',
    summary: 'who uses the control panel',
    options: { 'workspace W': 'of one workspace' },
    run: async () => (await panel()).people,
  },
  {
    usage: 'audit-log export',
    summary: 'what was done in the control panel, line by line',
    options: { ...WORKSPACE, '!out FILE': 'where to write it; never overwrites' },
    run: async () => (await panel()).exportLog,
  },
  {
    usage: 'audit-log verify <FILE>',
    summary: 'offline: whether an exported audit log is whole',
    options: {
      'head HASH': 'that an earlier export ended with: finds a log that was made anew as a whole',
    },
    run: async () => (await panel()).verifyExport,
  },
  {
    usage: 'audit',
    summary: 'ledger against chains; exit 1 on any difference, and where nothing was compared',
    run: async () => (await books()).audit,
  },
  {
    usage: 'reserves publish',
    summary:
      'states what is held and owed, signed by the nodes, and keeps it; exit 1 where more is owed',
    run: async () => (await reserves()).publish,
  },
  {
    usage: 'reserves list',
    summary: 'what was published',
    run: async () => (await reserves()).list,
  },
  {
    usage: 'reserves show [ID]',
    summary: 'a statement with its totals; the newest if none is named',
    options: {
      'statement FILE': 'where to write it as it is published; never overwrites',
      'holdings FILE':
        'where to write the list of addresses and keys, for who may see it; never overwrites',
    },
    run: async () => (await reserves()).show,
  },
  {
    usage: 'verify-reserves [FILE]',
    summary: 'offline: is what I am owed in this statement, and who signed it? FILE is the proof',
    options: {
      '!statement FILE': 'the statement as it was published',
      '!trust FILE': 'the trust file that the operator handed out',
      'holdings FILE': 'the list of addresses, each of which is then derived',
    },
    run: async () => {
      const { verifyReservesCommand } = await import('../verify-reserves.ts')
      return ({ words, values }) => verifyReservesCommand(words, values)
    },
  },
  {
    usage: 'reconcile',
    summary: 'after an older backup: adopts what the signer nodes have recorded, then audits',
    options: {
      'dry-run': 'tells what would be adopted',
      'gap N': 'addresses in a row without a deposit',
      'wait SECONDS': 'for scanners and confirmations; 600 by default',
      'scan-from NETWORK=HEIGHT':
        'first block of a network that was never scanned; several with commas',
    },
    run: async () => {
      const { reconcileBooks } = await import('../reconcile-cli.ts')
      return ({ home, values }) => reconcileBooks(home, values)
    },
  },
  {
    usage: 'rescan <NETWORK>',
    summary:
      'Read heights of a network again and credit the deposits that the scan missed. Known deposits stay as they are.',
    options: {
      'from H':
        'first height: a block height, ledger index (XRP), ledger sequence (XLM) or slot (SOL)',
      'to H': 'last height; the last one that the scan has read by default',
      stop: 'end the rescan that is under way',
    },
    run: async () => {
      const { rescan } = await import('../rescan-cli.ts')
      return ({ home, words, values }) => rescan(home, words[0] as string, values)
    },
  },
  {
    usage: 'backup',
    summary: 'database, secrets and the nodes of this machine, in a new folder with a manifest',
    options: {
      '!out DIR': 'the folder; never overwrites',
      'recovery-key FILE': 'public half of the recovery key that secrets are sealed to',
      'signing-key FILE':
        'signs the manifest; by default FILE.sign beside the FILE.pub of --recovery-key',
      'without-secrets': 'leaves them out',
      'without-nodes': 'leaves the signer nodes out: their operators back them up',
    },
    run: async () => (await backups()).backup,
  },
  {
    usage: 'backup-key',
    summary:
      'a recovery key for backups: FILE (secret, to be taken offline), FILE.pub and FILE.sign',
    options: {
      '!out FILE': 'where to; never overwrites',
      'from FILE': 'an existing recovery secret: writes FILE.pub and FILE.sign of it alone',
    },
    run: async () => (await backups()).recoveryKey,
  },
  {
    usage: 'restore',
    summary:
      'a backup on an empty home; the signer nodes of other hosts are restored by their operators',
    options: {
      '!in DIR': 'the backup',
      verify:
        'checks it and restores nothing; exit code 0: authentic, 2: undamaged but not proved authentic',
      'recovery-secret FILE':
        'secret half of the recovery key: proves the signature and opens the secrets',
      'recovery-key FILE':
        'your own copy of its public half: proves the signature, with --verify or --without-secrets',
      'manifest-sha256 HASH':
        'hash of the manifest as "backup" printed it: proves a backup without a signature',
      'without-secrets': 'leaves them out',
      'node-secrets 1=FILE,2=FILE,3=FILE':
        'local: the nodes’ recovery secrets; their homes are restored too',
      'wal DIR': 'the archived log, to go on from the backup to its end',
      'until TIME': 'or to a time, such as 2026-01-31T12:00:00Z',
    },
    run: async () => (await backups()).restore,
  },
  {
    usage: 'upgrade',
    summary:
      'Compare the migrations of this version with the database: what its start would apply, and whether it can.',
    options: { '!check': 'read only; exit 1 where a newer version has changed the database' },
    run: async () => (await import('../upgrade.ts')).upgrade,
  },
  {
    usage: 'doctor',
    summary:
      'Check endpoints, signer nodes, database, disk, certificates, prices and the platform’s loops, and say what to do; ' +
      'exit 1 if something is wrong.',
    run: async () => {
      const { doctor } = await import('../doctor.ts')
      return () => doctor()
    },
  },
  {
    usage: 'probe <NETWORK> <URL>',
    summary:
      'Check an endpoint for everything that the platform asks it for, before it is configured; exit 1 if something is missing.',
    options: {
      'username U': 'user name of HTTP basic authentication',
      'password-file F': 'file with its password',
      'header NAME:VALUE…':
        'HTTP header, such as a provider’s key; VALUE may be @FILE; repeat the option for several headers',
    },
    run: async () => (await import('../probe.ts')).probeRun,
  },
  {
    usage: 'completion <SHELL>',
    choices: ['bash', 'zsh', 'fish'],
    summary: 'Print the completion script of a shell: bash, zsh or fish (docs/operating.md).',
    run: async () => (await import('./completion.ts')).completionRun(COMMANDS),
  },
  {
    usage: 'secrets-key status',
    summary: 'who wraps the key under which secrets of others are sealed',
    run: async () => (await secretsKey()).status,
  },
  {
    usage: 'secrets-key wrap',
    summary:
      'puts that key under a key-encryption key, the first or another one (docs/production/keys.md)',
    options: { '!kek PROVIDER': 'KIND:name=value,… or @FILE' },
    run: async () => (await secretsKey()).wrap,
  },
  {
    usage: 'secrets-key change',
    summary:
      'Seal all secrets of the database under another key, while no process of the platform runs.',
    options: {
      '!new-key FILE': 'file with the new key: 32 bytes, their base64, or wrapped by a provider',
    },
    run: async () => (await secretsKey()).change,
  },
  ...SIGNER_COMMANDS,
]

/** The definition that these words lead to, and all of a group's where one word names a group. */
export function commandsFor(words: readonly string[]): readonly Definition[] {
  return COMMANDS.filter((definition) => {
    const own = wordsOf(definition)
    return (
      own.every((word, at) => words[at] === undefined || words[at] === word) && words.length > 0
    )
  })
}
