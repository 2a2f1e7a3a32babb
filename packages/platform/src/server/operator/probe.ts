import { existsSync, readFileSync } from 'node:fs'
import {
  ChainError,
  loadRegistry,
  type Fetch,
  type Network,
  type RpcEndpoint,
} from '@custody/chains'
import { probeEndpoint, type ProbeEnvironment, type ProbeResult } from '@custody/chains/probe'
import { systemEnvironment } from '../../core/environment.ts'
import { readVariable } from '../../core/settings/settings.ts'
import type { Outcome, Run, Values } from './cli/typed.ts'
import { OperatorError } from './command.ts'

const HEADER = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+)\s*:\s*(.+)$/
const STATE_WIDTH = 9
const CODE_WIDTH = 23

const CLOCKS: ProbeEnvironment = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  sleep: (milliseconds) => systemEnvironment().sleep(milliseconds),
}

/**
 * `custody probe`: checks an endpoint before the platform is configured with it. Needs no platform
 * and no database.
 */
export const probeRun: Run = ({ words: [network = '', url = ''], values }) =>
  probe({ network, url, values })

/**
 * Checks an endpoint.
 * @throws OperatorError if the arguments are wrong, or the endpoint does not respond
 */
export async function probe(
  { network: code, url, values }: { network: string; url: string; values: Values },
  ask: Fetch = fetch,
  clocks = CLOCKS,
): Promise<Outcome> {
  const network = networkOf(code)
  const endpoint = {
    url: urlOf(url),
    ...credentialsOf(values),
    headers: headersOf(values['header']),
  }
  try {
    const match = await probeEndpoint(network, endpoint, ask, clocks)
    return {
      ...shown(match),
      exitCode: match.verdict === 'usable' || match.verdict === 'usable with limits' ? 0 : 1,
    }
  } catch (error) {
    if (error instanceof ChainError) throw new OperatorError(error.message)
    throw error
  }
}

function networkOf(code: string): Network {
  const mode = readVariable('CUSTODY_NETWORK')
  const { networks, network, asset } = loadRegistry(mode)
  const match = network(code)
  if (match) return match
  const hint = [network(code.toUpperCase())?.code ?? asset(code.toUpperCase())?.network].filter(
    (each) => each !== undefined,
  )
  throw new OperatorError(
    `NETWORK: network ${code} does not exist${hint.length > 0 ? `: did you mean ${hint.join()}?` : ''} (CUSTODY_NETWORK=${mode})`,
    `one of ${networks.map((each) => each.code).join(', ')}`,
  )
}

/** Parses a URL. The error does not contain the URL, which may contain a key. */
function urlOf(text: string): string {
  const url = URL.parse(text)
  if (!url)
    throw new OperatorError('URL: must be an http(s) URL, such as https://node.example:8545')
  if (url.protocol === 'ws:' || url.protocol === 'wss:') {
    throw new OperatorError('URL: is a WebSocket URL: use the http(s) URL of the same endpoint')
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new OperatorError(`URL: must begin with http:// or https://, not ${url.protocol}`)
  }
  if (url.username !== '' || url.password !== '') {
    throw new OperatorError(
      'URL: must not contain a user name or password: use --username and --password-file',
    )
  }
  return text
}

function credentialsOf({
  username,
  'password-file': file,
}: Values): Pick<RpcEndpoint, 'username' | 'password'> {
  if (typeof file === 'string' && username === undefined)
    throw new OperatorError('--password-file: requires --username')
  if (typeof username !== 'string') return {}
  return {
    username,
    ...(typeof file === 'string' ? { password: contentOf('password-file', file) } : {}),
  }
}

function headersOf(input: Values[string]): Record<string, string> {
  const lines = typeof input === 'string' ? input.split('\n') : []
  return Object.fromEntries(
    lines.map((line) => {
      const [, name, value] = HEADER.exec(line) ?? []
      if (name === undefined || value === undefined) {
        throw new OperatorError(
          '--header: must be NAME:VALUE, such as "project_id: KEY"; repeat the option for several headers',
        )
      }
      const content = value.startsWith('@') ? contentOf('header', value.slice(1)) : value
      if (/[^\t\x20-\x7e\x80-\xff]/.test(content)) {
        throw new OperatorError(
          `--header: the value of ${name} contains characters that are not allowed in a header`,
        )
      }
      return [name, content]
    }),
  )
}

/** Returns the first line of a file. */
function contentOf(option: string, path: string): string {
  if (!existsSync(path)) throw new OperatorError(`--${option}: the file ${path} does not exist`)
  const [line = ''] = readFileSync(path, 'utf8').split(/\r?\n/)
  if (line === '') throw new OperatorError(`--${option}: the first line of ${path} is empty`)
  return line
}

const VERDICTS: Record<ProbeResult['verdict'], string> = {
  usable: 'usable: the endpoint supports all required requests',
  'usable with limits': 'usable with the limits above',
  'not usable': 'not usable: the requests that are missing above are required',
  'wrong network': 'not usable: the endpoint serves another network',
}

/** Formats a result as a table, and as an object whose codes are stable. */
function shown(match: ProbeResult): { result: Record<string, unknown>; text: string[] } {
  const {
    network,
    host,
    verdict,
    complete,
    checks,
    questions,
    rateLimited,
    latency,
    slowest,
    headAge,
  } = match
  const line = ({ code, state, reason, advice }: ProbeResult['checks'][number]) =>
    `${state.padEnd(STATE_WIDTH)}${code.padEnd(CODE_WIDTH)}${reason}${advice === null ? '' : `. What to do: ${advice}`}`
  const note = (name: string, text: string) =>
    `${''.padEnd(STATE_WIDTH)}${name.padEnd(CODE_WIDTH)}${text}`
  const notes = [
    ...(latency === null
      ? []
      : [
          note(
            'times',
            `${latency} ms for the newest block (median); slowest response ${slowest.milliseconds} ms (${slowest.what})`,
          ),
        ]),
    ...(headAge === null
      ? []
      : [
          note(
            'clock',
            `the newest block is ${Math.abs(headAge)} s ${headAge < 0 ? 'ahead of' : 'behind'} this machine’s clock`,
          ),
        ]),
  ]
  const rest = complete ? '' : '; the remaining checks were skipped'
  const last = `${network}: ${VERDICTS[verdict]}${rest}; ${questions} requests sent`
  return {
    result: {
      ok: verdict === 'usable' || verdict === 'usable with limits',
      network,
      host,
      verdict,
      complete,
      checks,
      questions,
      rate_limited: rateLimited,
      latency_ms: latency,
      slowest: { question: slowest.what, milliseconds: slowest.milliseconds },
      head_age_s: headAge,
    },
    text: [`${network} at ${host}`, ...checks.map(line), ...notes, last],
  }
}
