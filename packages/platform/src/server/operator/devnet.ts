import { jsonText } from '@custody/chains/terminal'
import { OperatorError } from './command.ts'
import { callPlatform } from './connect.ts'

type Input = Record<string, unknown>

/** Requests to the local chains, by the words of `custody devnet`. */
const COMMANDS: Record<string, (words: (string | undefined)[], values: Input) => Input> = {
  fund: ([asset, address, amount], values) => ({
    command: 'fund',
    asset,
    address,
    amount,
    tag: values['tag'] ?? null,
  }),
  mine: ([network, blocks]) => ({ command: 'mine', network, blocks: Number(blocks) }),
  reorg: ([network, depth]) => ({ command: 'reorg', network, depth: Number(depth) }),
  fault: ([network, mode]) => ({ command: 'fault', network, mode }),
  drop: ([network, hash]) => ({ command: 'drop', network, hash }),
  congestion: ([network, rate]) => ({ command: 'congestion', network, fee_rate: rate }),
  clock: ([advance]) => ({ command: 'clock', network: 'TRX', advance }),
  risk: ([address, level]) => ({ command: 'risk', address, level }),
  price: ([coin, price], values) => ({
    command: 'price',
    coin,
    price,
    source: values['source'] ?? null,
  }),
  'venue key': (_, values) => ({
    command: 'venue',
    action: 'key',
    exchange: values['exchange'],
    permissions: values['permissions'],
    no_withdraw: values['no-withdraw'],
    balances: values['balances'],
    account_of: values['account-of'],
    nonce_window: values['nonce-window'],
    unlimited: values['unlimited'],
  }),
  'venue revoke': ([key]) => ({ command: 'venue', action: 'revoke', api_key: key }),
  'venue address': ([key, asset, address], { name, tag }) => ({
    command: 'venue',
    action: 'address',
    api_key: key,
    asset,
    address,
    name,
    tag,
  }),
  'venue urls': () => ({ command: 'venue', action: 'urls' }),
  contract: ([network, ticker]) => ({ command: 'contract', network, ticker }),
  urls: () => ({ command: 'urls' }),
  info: () => ({ command: 'info' }),
}

/**
 * Runs `custody devnet …`, which controls functions of the local chains that no real network has.
 */
export async function devnetCommand(
  home: string,
  words: readonly string[],
  values: Input,
): Promise<{ result: Input; text: string | string[] }> {
  const [action = '', ...rest] = words
  const input = Object.hasOwn(COMMANDS, action) ? COMMANDS[action] : undefined
  if (!input)
    throw new OperatorError(
      `devnet: ${action || '(nothing)'} is not one of ${Object.keys(COMMANDS).join(', ')}`,
    )
  const result = await callPlatform(home, 'devnet', input(rest, values))
  // A key is copied elsewhere or read by a program, so it is printed as JSON.
  if (action === 'venue key') return { result, text: jsonText(result) }
  if (action === 'urls')
    return { result, text: (result['endpoints'] as Endpoint[]).flatMap(endpointLines) }
  return {
    result,
    text: Object.entries(result).map(
      ([key, value]) => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
    ),
  }
}

interface Endpoint {
  network: string
  protocol: string
  url: string
  websocket?: string
  example: string
}

const endpointLines = ({ network, protocol, url, websocket, example }: Endpoint): string[] => [
  `${network.padEnd(8)}${protocol.padEnd(23)}${url}${websocket === undefined ? '' : `, ${websocket}`}`,
  ...`        ${example}`.split('\n'),
]
