import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { OperatorError } from './command.ts'
import { callPlatform, callSigner, localSigners } from './connect.ts'
import { devnetCommand } from './devnet.ts'
import { doctor } from './doctor.ts'
import { createApiUserEverywhere, enrolAtNodes, enrolmentLine, enrolmentOfNodes, readApiKey, type Trust, type Wish } from './enrol.ts'
import { keygen } from './keygen.ts'
import { newOrder, nodeAt, orderNodes, type NodeAnswer } from './nodes.ts'
import { refreshOfac } from './ofac.ts'
import { reconcileBooks } from './reconcile-cli.ts'
import { sendRequest } from './request.ts'
import { orderDrain, orderLine, orderStake, type StakeAction, type TankOrder } from './tank-orders.ts'
import { verifyAddressCommand } from './verify-address.ts'

const HELP = `Usage: npx custody COMMAND [options]     (--json prints one JSON object as the last line)

  api-user create --workspace W --sub-account S --role full|read-only --public-key FILE [--rate-limit N] [--trust-file FILE]
                                          FILE: what the caller pins to check addresses by itself
  api-user list [--workspace W]
  api-user enrol --api-key KEY            again, at a signer node that was away: as the two others tell it, or as typed
  api-user revoke --api-key KEY
  keygen [--out FILE]                     an RSA-4096 pair: FILE (private) and FILE.pub
  request METHOD PATH [BODY] --api-key KEY --key FILE [--url URL]
                                          sends a signed request to the running platform
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
  devnet urls                             where each local chain is, with an example that can be pasted
  devnet contract NETWORK TICKER          where a token's local contract stands, for the asset registry (docs/adding-a-chain.md)
  devnet clock +14d                       moves the time of Tron's blocks, and nothing else's (s, m, h, d)
  aml refresh-ofac FILE [--asset A] [--published YYYY-MM-DD] [--force]
                                          replaces the list of sanctioned addresses: OFAC's XML, or one address a line
  aml release --transaction ID            lets one deposit go on that is held because a sender of it is unknown
  sweep set [--network N | --asset A] [--cost-multiple M|none] [--min-amount COINS|none]
                                          deposit addresses are swept when they hold more than M times the network fee
  sweep show
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

type Values = Record<string, string | boolean | undefined>
interface Outcome { result: Record<string, unknown>; text?: string; exitCode?: number }

const home = resolve(process.env['CUSTODY_HOME'] ?? '.custody')

function need(values: Values, option: string): string {
  const value = values[option]
  if (typeof value !== 'string' || value === '') throw new OperatorError(`--${option} is needed`)
  return value
}

function readText(path: string, option: string): string {
  if (!existsSync(path)) throw new OperatorError(`--${option}: there is no file ${path}`)
  return readFileSync(path, 'utf8')
}

function warn(problems: readonly string[], what: string): void {
  for (const problem of problems) process.stderr.write(`warning: ${what}: ${problem}\n`)
}

/** What was typed of an API user. */
function wishOf(values: Values): Wish {
  const publicKeyPem = readText(need(values, 'public-key'), 'public-key')
  return {
    workspace: need(values, 'workspace'), subAccount: need(values, 'sub-account'), role: need(values, 'role'), publicKeyPem,
    ...(values['api-key'] === undefined ? {} : { apiKey: need(values, 'api-key') }), ...(values['index'] === undefined ? {} : { index: Number(values['index']) }),
  }
}

function writeTrust(values: Values, trust: Trust | null): string[] {
  if (values['trust-file'] === undefined) return []
  if (!trust) throw new OperatorError('--trust-file: is written where the signer nodes are, by "custody signer enrol"')
  const file = resolve(need(values, 'trust-file'))
  writeFileSync(file, `${JSON.stringify(trust, null, 2)}\n`)
  return [`what the caller pins: ${file}`]
}

async function createApiUser(values: Values): Promise<Outcome> {
  const { apiKey, index, fingerprint, trust, answers, problems } = await createApiUserEverywhere(home, wishOf(values), values['rate-limit'] === undefined ? undefined : Number(values['rate-limit']))
  warn(problems, 'not enrolled everywhere yet (repeat with "api-user enrol")')
  const created = { api_key: apiKey, workspace: values['workspace'], sub_account: values['sub-account'], sub_account_index: index, role: values['role'], key_fingerprint: fingerprint, nodes: answers }
  const lines = [`API key ${apiKey} (${String(values['role'])}) for ${String(values['workspace'])} / ${String(values['sub-account'])}`, ...answers.map(enrolmentLine), ...writeTrust(values, trust)]
  return { result: created, text: lines.join('\n') }
}

/** Repeats an enrolment at every node: as typed, or, with the API key alone, as two nodes tell it alike. */
async function enrolApiUser(values: Values): Promise<Outcome> {
  const signers = localSigners(home)
  const apiKey = need(values, 'api-key')
  const wish = values['public-key'] === undefined ? await enrolmentOfNodes(signers, apiKey) : wishOf(values)
  const { answers, trust, problems } = await enrolAtNodes(signers, { ...wish, apiKey })
  warn(problems, 'not enrolled')
  return { result: { api_key: apiKey, enrolled: true, nodes: answers, problems }, text: [`API key ${apiKey} is enrolled`, ...answers.map(enrolmentLine), ...writeTrust(values, trust)].join('\n'), exitCode: problems.length === 0 ? 0 : 1 }
}

/** At the nodes first: they are who signs. The platform is told in any case. */
async function revokeApiUser(values: Values): Promise<Outcome> {
  const apiKey = readApiKey(need(values, 'api-key'))
  const signers = localSigners(home)
  const nodes = signers.length === 0 ? { answers: [], problems: [] } : await orderNodes(signers, 'revoke', { api_key: apiKey }, { expect: { api_key: apiKey, revoked: true } })
    .catch((error: unknown) => ({ answers: [] as NodeAnswer[], problems: [error instanceof Error ? error.message : String(error)] }))
  const platform = await callPlatform(home, 'api-user revoke', { api_key: apiKey }).then(() => null, (error: Error) => `the platform: ${error.message}`)
  const known = nodes.answers.filter((answer) => answer['known'] === true)
  warn(nodes.problems, 'not revoked')
  if (platform !== null && known.length === 0) throw new OperatorError(`--api-key: there is no API user ${apiKey} (${platform})`)
  if (platform !== null) warn([platform], 'not revoked')
  const isDone = platform === null && nodes.answers.length >= Math.min(2, signers.length)
  return { result: { api_key: apiKey, revoked: isDone, nodes: nodes.answers }, text: [`API key ${apiKey} is ${isDone ? '' : 'NOT '}revoked`, ...known.map(enrolmentLine)].join('\n'), exitCode: isDone ? 0 : 1 }
}

async function drain(values: Values): Promise<Outcome> {
  const signers = localSigners(home)
  const typed = { order: signers.length === 0 ? need(values, 'order') : newOrder(), workspace: need(values, 'workspace'), network: need(values, 'network'), to: need(values, 'to') }
  // Whether there is such a tank; what is answered goes nowhere.
  await callPlatform(home, 'gas-tank address', typed)
  if (signers.length > 0) tellOrder(await orderDrain(signers, typed))
  const started = await callPlatform(home, 'gas-tank drain', typed)
  return ended('drain', started, (hash) => `${String(started['amount'])} ${String(started['asset'])} sent to ${typed.to}: ${hash}`)
}

/** Stakes for a tank, by an order that each signer node is given too. */
async function tankStake(action: StakeAction, values: Values): Promise<Outcome> {
  const signers = localSigners(home)
  const typed = { order: signers.length === 0 ? need(values, 'order') : newOrder(), workspace: need(values, 'workspace'), network: need(values, 'network'), action, amount: values['amount'], resource: values['resource'] ?? 'ENERGY' }
  if (signers.length > 0) tellOrder(await orderStake(signers, typed))
  const started = await callPlatform(home, 'gas-tank stake', typed)
  return ended(action, started, (hash) => `${action} of ${String(started['amount'])} ${String(started['asset'])}${started['resource'] ? ` for ${String(started['resource'])}` : ''} by the tank ${String(started['address'])}: ${hash}`)
}

function tellOrder({ answers, problems }: TankOrder): void {
  for (const answer of answers) process.stderr.write(`${orderLine(answer)}\n`)
  warn(problems, 'not ordered')
}

/** Waits for the end of what the operator started. */
async function ended(what: string, started: Record<string, unknown>, done: (hash: string) => string): Promise<Outcome> {
  for (let count = 0; count < 240; count++) {
    const state = await callPlatform(home, 'transaction', { id: started['id'] })
    if (state['status'] === 'failed') throw new OperatorError(`the ${what} failed: ${String(state['failure_reason'])}`)
    if (state['status'] === 'confirmed') return { result: { ...started, hash: state['hash'], status: 'confirmed' }, text: done(String(state['hash'])) }
    await new Promise((resolved) => setTimeout(resolved, 500))
  }
  return { result: { ...started, status: 'pending' }, text: `the ${what} ${String(started['id'])} is still pending` }
}

async function audit(): Promise<Outcome> {
  const result = await callPlatform(home, 'audit', {}) as { ok: boolean; differences: Record<string, string>[]; networks: Record<string, { addresses: number; coins: number }>; books: { entries: number } }
  const looked = Object.entries(result.networks).map(([code, { addresses, coins }]) => `${code}: ${addresses > 0 ? `${addresses} addresses` : `${coins} coins`}`).join(', ')
  const lines = result.differences.map((each) => `DIFFERENCE ${each['network']} ${each['workspace']} ${each['subject']} ${each['asset']}: books ${each['ledger']}, chain ${each['chain']}${each['note'] ? ` (${each['note']})` : ''}`)
  return { result: { ...result }, text: [`${result.books.entries} ledger entries; ${looked}`, ...lines, result.ok ? 'the books agree with the chains' : `${lines.length} differences`].join('\n'), exitCode: result.ok ? 0 : 1 }
}

/** Orders at one node, on its own host, as its operator types them (docs/enrolment.md). */
async function atNode(action: string, values: Values): Promise<Outcome> {
  const node = nodeAt(resolve(need(values, 'home')))
  const tank = (): { order: string; workspace: string; network: string } => ({ order: typeof values['order'] === 'string' ? values['order'] : newOrder(), workspace: need(values, 'workspace'), network: need(values, 'network') })
  const ordered = ({ answers: [answer], order }: TankOrder): Outcome => ({ result: { ...answer }, text: `${orderLine(answer as NodeAnswer)}\ngive the other nodes and the platform --order ${order}` })
  switch (action) {
    case 'enrol': {
      const { answers: [answer], apiKey, index, trust } = await enrolAtNodes([node], wishOf(values))
      const lines = [enrolmentLine(answer as NodeAnswer), `API key ${apiKey}, index ${index}: give the same --api-key at the other nodes, and --api-key and --index at the platform`, ...writeTrust(values, trust)]
      return { result: { ...answer }, text: lines.join('\n') }
    }
    case 'revoke': {
      const apiKey = readApiKey(need(values, 'api-key'))
      const { answers: [answer] } = await orderNodes([node], 'revoke', { api_key: apiKey }, { expect: { api_key: apiKey, revoked: true } })
      return { result: { ...answer }, text: answer?.['known'] === true ? enrolmentLine(answer) : `signer ${node.node}: ${apiKey} was not enrolled here, and never will be` }
    }
    case 'drain': return ordered(await orderDrain([node], { ...tank(), to: need(values, 'to') }))
    default: return ordered(await orderStake([node], { ...tank(), action: action as StakeAction, amount: values['amount'], resource: values['resource'] ?? 'ENERGY' }))
  }
}

const AT_NODE = ['enrol', 'revoke', 'drain', 'stake', 'unstake', 'release']

async function signer(words: string[], values: Values): Promise<Outcome> {
  if (AT_NODE.includes(words[0] ?? '')) return atNode(words[0] as string, values)
  const signers = localSigners(home)
  const pick = () => {
    const found = signers.find(({ node }) => String(node) === need(values, 'node'))
    if (!found) throw new OperatorError('--node: must be 1, 2 or 3')
    return found
  }
  switch (words[0]) {
    case 'status': {
      const result = await callPlatform(home, 'signer status', {}) as { nodes: Record<string, unknown>[] }
      return { result: { ...result }, text: result.nodes.map((node) => (node['error'] ? `signer ${String(node['node'])}: ${String(node['error'])}` : `signer ${String(node['node'])}: ready, ${String(node['keys'])} keys, record ${String((node['record'] as { height: number }).height)}`)).join('\n'), exitCode: result.nodes.every((node) => !node['error']) ? 0 : 1 }
    }
    case 'refresh': {
      const first = signers[0]
      if (!first) throw new OperatorError('no signer node is on this machine')
      const result = await callSigner(first, 'refresh', values['workspace'] ? { workspace: values['workspace'] } : {}) as { refreshed: { key_id: string; epoch: number }[]; failed: { key_id: string; reason: string }[] }
      if (values['workspace'] && result.refreshed.length + result.failed.length === 0) throw new OperatorError(`--workspace: the signer nodes hold no key of ${values['workspace'] as string}`)
      const lines = [...result.refreshed.map((key) => `${key.key_id}: epoch ${key.epoch}`), ...result.failed.map((key) => `${key.key_id}: FAILED, the old shares stay in use: ${key.reason}`)]
      return { result, text: lines.join('\n'), exitCode: result.failed.length === 0 ? 0 : 1 }
    }
    case 'backup': {
      const result = await callSigner(pick(), 'backup', { file: resolve(need(values, 'out')) }) as Record<string, unknown>
      return { result, text: `backup written to ${resolve(need(values, 'out'))}` }
    }
    case 'restore': {
      const result = await callSigner(pick(), 'restore', { file: resolve(need(values, 'in')), recovery_secret_file: resolve(need(values, 'recovery-secret')) }) as Record<string, unknown>
      return { result, text: JSON.stringify(result) }
    }
    default:
      throw new OperatorError(`signer: ${words[0] ?? '(nothing)'} is not one of status, refresh, backup, restore, ${AT_NODE.join(', ')}`)
  }
}

async function run(positionals: string[], values: Values): Promise<Outcome> {
  const [group, action, ...rest] = positionals
  switch (`${group ?? ''} ${action ?? ''}`.trim()) {
    case 'api-user create': return createApiUser(values)
    case 'api-user list': {
      const result = await callPlatform(home, 'api-user list', { workspace: values['workspace'] }) as { api_users: Record<string, string>[] }
      return { result: { ...result }, text: result.api_users.map((user) => `${user['api_key']}  ${user['role']}  ${user['workspace']} / ${user['sub_account']}${user['revoked_at'] ? '  revoked' : ''}`).join('\n') || 'no API users' }
    }
    case 'api-user enrol': return enrolApiUser(values)
    case 'api-user revoke': return revokeApiUser(values)
    case 'gas-tank list': {
      const result = await callPlatform(home, 'gas-tank list', { workspace: need(values, 'workspace') }) as { gas_tanks: Record<string, unknown>[] }
      return { result: { ...result }, text: result.gas_tanks.map((tank) => `${String(tank['network'])}  ${String(tank['balance'])} ${String(tank['asset'])}  ${String(tank['status'])}  ${String(tank['address'] ?? 'not used yet')}`).join('\n') }
    }
    case 'gas-tank address': {
      const result = await callPlatform(home, 'gas-tank address', { workspace: need(values, 'workspace'), network: need(values, 'network') })
      return { result, text: String(result['address']) }
    }
    case 'gas-tank drain': return drain(values)
    case 'gas-tank stake':
    case 'gas-tank unstake':
    case 'gas-tank release': return tankStake(action as StakeAction, values)
    case 'gas-tank set': {
      const result = await callPlatform(home, 'gas-tank set', { workspace: need(values, 'workspace'), network: need(values, 'network'), threshold: values['threshold'], fee_cap: values['fee-cap'], max_gas_price: values['max-gas-price'] })
      return { result, text: `${String(result['network'])}: threshold ${String(result['threshold'])}, fee cap ${String(result['fee_cap'] ?? 'none')}, maximum gas price ${String(result['max_gas_price'] ?? 'none')}` }
    }
    case 'prepaid-fee adjust': {
      const result = await callPlatform(home, 'prepaid-fee adjust', { workspace: need(values, 'workspace'), amount: need(values, 'amount') })
      return { result, text: `${String(result['workspace'])}: ${String(result['balance'])} USD` }
    }
    case 'prepaid-fee show': {
      const result = await callPlatform(home, 'prepaid-fee show', { workspace: need(values, 'workspace') })
      return { result, text: `${String(result['workspace'])}: ${String(result['balance'])} USD (${String(result['status'])}), ${String(result['reserved'])} USD reserved; ${String(result['tier'])}, ${String(result['volume_30d'])} USD in 30 days` }
    }
    case 'suspense list': {
      const result = await callPlatform(home, 'suspense list', {}) as { suspense: Record<string, unknown>[] }
      return { result: { ...result }, text: result.suspense.map((each) => `${String(each['created_at'])}  ${String(each['amount'])} ${String(each['asset'])}  to ${String(each['address'])} tag ${String(each['address_tag'] ?? '-')}  from ${String(each['sender'] ?? '?')}  ${String(each['workspace'])}  ${String(each['hash'])}`).join('\n') || 'nothing in suspense' }
    }
    case 'sweep set':
    case 'sweep show': {
      const result = await callPlatform(home, `sweep ${String(action)}`, { network: values['network'], asset: values['asset'], cost_multiple: values['cost-multiple'], min_amount: values['min-amount'] })
      const { assets, waiting } = result as { assets: Record<string, string>[]; waiting: Record<string, string>[] }
      return { result, text: [...assets.map((each) => `${each['asset']}: more than ${each['cost_multiple']} times the network fee, at least ${each['min_amount']}`), ...waiting.map((each) => `${each['asset']} ${each['address']}: ${each['amount']} ${each['reason']}`)].join('\n') }
    }
    case 'suspense assign': {
      const result = await callPlatform(home, 'suspense assign', { id: need(values, 'id') })
      return { result, text: `${String(result['amount'])} ${String(result['asset'])} credited to wallet ${String(result['wallet_id'])}` }
    }
    case 'aml release': {
      const result = await callPlatform(home, 'aml release', { transaction: need(values, 'transaction') })
      const done = result['again'] ? 'was released before' : 'is released'
      return { result, text: `${String(result['transaction'])} ${done}; senders that are known stay screened` }
    }
    case 'aml refresh-ofac': return refreshOfac(home, rest[0], { asset: (values['asset'] as string | undefined) ?? null, published: (values['published'] as string | undefined) ?? null, force: values['force'] === true })
    case 'audit': return audit()
    case 'reconcile': return reconcileBooks(home, values)
    case 'keygen': return keygen(values)
    case 'doctor': return doctor()
    default:
  }
  if (group === 'devnet') return devnetCommand(home, [action ?? '', ...rest], values)
  if (group === 'signer') return signer([action ?? '', ...rest], values)
  if (group === 'verify-address') return verifyAddressCommand(positionals.slice(1), values)
  if (group === 'request') return sendRequest(home, positionals.slice(1), values)
  throw new OperatorError(`unknown command: ${positionals.join(' ') || '(none)'}\n\n${HELP}`)
}

const STRINGS = [
  'id', 'transaction', 'workspace', 'sub-account', 'role', 'public-key', 'rate-limit', 'api-key', 'network', 'to', 'tag', 'out', 'in', 'key', 'url', 'node', 'recovery-secret', 'amount', 'resource', 'source',
  'home', 'order', 'index', 'trust-file', 'asset', 'published', 'threshold', 'fee-cap', 'max-gas-price', 'cost-multiple', 'min-amount', 'keys', 'trust', 'path', 'max-index', 'gap', 'wait', 'scan-from',
] as const

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' }, force: { type: 'boolean' },
      'dry-run': { type: 'boolean' }, ...Object.fromEntries(STRINGS.map((name) => [name, { type: 'string' as const }])) },
  })
  if (values.help || positionals.length === 0 || positionals[0] === 'help') process.stdout.write(`${HELP}\n`)
  else {
    const { result, text, exitCode } = await run(positionals, values as Values)
    if (values.json) process.stdout.write(`${JSON.stringify(result)}\n`)
    else process.stdout.write(`${text ?? JSON.stringify(result, null, 2)}\n`)
    process.exitCode = exitCode ?? 0
  }
} catch (error) {
  process.stderr.write(`custody: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

