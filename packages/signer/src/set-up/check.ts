import { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import {
  CertificateError,
  checkCertificate,
  pinOf,
  requirePinned,
} from '@custody/request-auth/pinned'
import { z } from 'zod'
import { loadConfig } from '../config.ts'
import { fingerprintOf, fingerprintsOf } from '../fingerprints.ts'
import { SetupError } from './files.ts'

/**
 * Connects to all parties in a finished configuration, and reports what does not match. It changes
 * nothing, and needs no running node on this host.
 */

/**
 * Maximum difference of clocks in milliseconds that is not reported. A request is valid for 30 s,
 * and a caller's clock may be 60 s ahead.
 */
export const CLOCK_MS_MAX = 5000
const TIMEOUT_MS = 5000
const ANSWER_BYTES_MAX = 16_384
const DAY_MS = 86_400_000
/** Days before the end of a TLS certificate from which it is reported. */
const WARN_DAYS = 30

interface CheckRequest {
  node: number
  host: string
  port: number
  certificate: string
  identity: string
}
interface Client {
  key: string
  certificate: string
}

const hello = z.object({
  node: z.int(),
  mode: z.string(),
  clock: z.number(),
  prints: z.record(z.string(), z.string()),
})

interface ProbeResponse {
  text: string
  status: number
  expiresAt: Date | null
  offsetMs: (clock: number) => number
}

function ask(client: Client, { host, port, certificate }: CheckRequest): Promise<ProbeResponse> {
  const pin = pinOf(certificate)
  let expiresAt: Date | null = null
  const sentAt = Date.now()
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        // `requirePinned` replaces the check by certificate authorities.
        agent: false,
        host,
        port,
        path: '/hello',
        method: 'GET',
        key: client.key,
        cert: client.certificate,
        minVersion: 'TLSv1.3',
        servername: '',
        rejectUnauthorized: false,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
          if (text.length > ANSWER_BYTES_MAX)
            outgoing.destroy(new Error('its response is too large'))
        })
        response.on('error', reject)
        response.on('end', () => {
          const gotAt = Date.now()
          const halfMs = (gotAt - sentAt) / 2
          // The difference is only known up to the duration of the request.
          const offsetMs = (clock: number) => {
            const offset = clock - (sentAt + halfMs)
            return Math.max(0, Math.abs(offset) - halfMs) * Math.sign(offset)
          }
          resolve({ text, status: response.statusCode ?? 0, expiresAt, offsetMs })
        })
      },
    )
    outgoing.on('socket', (socket) => {
      requirePinned(socket as TLSSocket, {
        pin,
        now: Date.now,
        onPresented: ({ validToDate }) => {
          expiresAt = validToDate
        },
      })
    })
    outgoing.on('error', reject)
    outgoing.end()
  })
}

const RENEW_THERE = 'on its host, run: custody tls renew --home HOME'

/**
 * Returns a line for the operator if a certificate expires within `WARN_DAYS`; otherwise an empty
 * list.
 */
function expiryNotice(who: string, expiresAt: Date | null, renew: string): string[] {
  if (expiresAt === null || expiresAt.getTime() - Date.now() > WARN_DAYS * DAY_MS) return []
  return [
    `${who}: the TLS certificate expires on ${expiresAt.toISOString().slice(0, 10)}; ${renew}`,
  ]
}

function whyNot(error: unknown, at: string): string {
  const code = String((error as { code?: unknown }).code ?? '')
  if (error instanceof CertificateError) {
    return error.code === 'OTHER_KEY' || error.code === 'MISSING'
      ? `${at} presents another certificate than this configuration contains: another host responds there, or the wrong public half was transferred`
      : `${at}: ${error.message}; ${RENEW_THERE}`
  }
  if (/SSL|TLS|ECONNRESET|EPIPE/.test(code)) {
    return `${at} does not accept the certificate of this host: its configuration contains another public half of this host`
  }
  const reasons: Record<string, string> = {
    ECONNREFUSED: 'no process listens at this address: start the node, or correct its --listen',
    EHOSTUNREACH: 'the network has no route to this address',
    ENETUNREACH: 'the network has no route to this address',
    ENOTFOUND: 'its host name cannot be resolved',
    EAI_AGAIN: 'its host name cannot be resolved',
  }
  const timedOut =
    (error as Error).name === 'TimeoutError' || (error as Error).name === 'AbortError'
  return `${at} cannot be reached: ${timedOut ? 'no response; check the firewall' : (reasons[code] ?? (code || 'no response'))}`
}

export const named = (name: string): string =>
  name === 'platform' ? 'the platform' : `signer node ${name}`

/**
 * Returns how far the clock of each peer of a node is ahead of this host's clock, in milliseconds,
 * less the duration of the request.
 * @throws Error if a peer does not respond
 */
export async function peerClocks(home: string): Promise<{ node: number; offsetMs: number }[]> {
  const { client, checks: requests } = ofNode(home)
  return Promise.all(
    requests.map(async (each) => {
      const at = `signer node ${each.node} (${each.host}:${each.port})`
      const { text, status, offsetMs } = await ask(client, each).catch((error: unknown) => {
        throw new SetupError(whyNot(error, at))
      })
      const said = status === 200 ? hello.safeParse(JSON.parse(text)) : null
      if (!said?.success || said.data.node !== each.node)
        throw new SetupError(`${at} returned ${status}, which is not a response of that node`)
      return { node: each.node, offsetMs: offsetMs(said.data.clock) }
    }),
  )
}

/**
 * Checks all parties.
 * @returns a line for each party, and whether everything matches
 * @throws SetupError if the data folder is not set up
 */
export async function check(home: string): Promise<{ lines: string[]; ok: boolean }> {
  const {
    client,
    mode,
    checks: requests,
    prints,
  } = existsSync(join(home, 'config.json')) ? ofNode(home) : ofPlatform(home)
  const lines = Object.entries(prints).map(([name, print]) => `${named(name).padEnd(15)} ${print}`)
  const own = new X509Certificate(client.certificate)
  const renewHere = `run: custody tls renew --home ${home}`
  const notices = expiryNotice('this host', own.validToDate, renewHere)
  const ownProblems: string[] = []
  try {
    checkCertificate(own, [pinOf(own)], Date.now())
  } catch (error) {
    ownProblems.push(`this host: ${(error as Error).message}; ${renewHere}`)
    notices.length = 0
  }
  const answers = await Promise.all(
    requests.map(async (each) => {
      const at = `signer node ${each.node} (${each.host}:${each.port})`
      const problems: string[] = []
      try {
        const { text, status, expiresAt, offsetMs } = await ask(client, each)
        notices.push(...expiryNotice(at, expiresAt, RENEW_THERE))
        const said = status === 200 ? hello.safeParse(JSON.parse(text)) : null
        if (!said?.success)
          return [`${at} returned ${status}, which is not a response of a node of this version`]
        const { node, mode: theirs, clock, prints: held } = said.data
        if (node !== each.node) problems.push(`${at} reports that it is node ${node}`)
        if (theirs !== mode) problems.push(`${at} has --mode ${theirs}, this home --mode ${mode}`)
        const offset = offsetMs(clock)
        if (Math.abs(offset) > CLOCK_MS_MAX) {
          problems.push(
            `${at}: its clock is ${Math.abs(Math.round(offset / 1000))} s ${offset > 0 ? 'ahead of' : 'behind'} this host's: synchronise both by NTP`,
          )
        }
        for (const [name, print] of Object.entries(prints)) {
          if (held[name] === print) continue
          problems.push(
            `${at} has another public half of ${named(name)} (${held[name] ?? 'none'}) than this host (${print})`,
          )
        }
      } catch (error) {
        problems.push(whyNot(error, at))
      }
      return problems.length > 0 ? problems : [`${at}: ok`]
    }),
  )
  const said = [...ownProblems, ...answers.flat()]
  return { lines: [...lines, ...said, ...notices], ok: said.every((line) => line.endsWith(': ok')) }
}

function ofNode(home: string): {
  client: Client
  mode: string
  checks: CheckRequest[]
  prints: Record<string, string>
} {
  const config = loadConfig(home)
  const own = {
    node: config.node,
    certificate: config.tlsCertificate,
    identity: readFileSync(join(home, 'identity.pub'), 'utf8'),
  }
  const peers = config.peerList.map(({ node, host, port, certificate, identity }) => ({
    node,
    host,
    port,
    certificate,
    identity: identity.export({ type: 'spki', format: 'pem' }) as string,
  }))
  return {
    client: { key: config.tlsKey, certificate: config.tlsCertificate },
    mode: config.mode,
    checks: peers,
    prints: fingerprintsOf({ own, peers, platform: config.platform_certificate }),
  }
}

function ofPlatform(home: string): ReturnType<typeof ofNode> {
  if (!existsSync(join(home, 'peers.json'))) {
    throw new SetupError(
      `${home} has neither config.json (of a node) nor peers.json (of a platform)`,
    )
  }
  const { mode, nodes } = JSON.parse(readFileSync(join(home, 'peers.json'), 'utf8')) as {
    mode: string
    nodes: CheckRequest[]
  }
  const client = {
    key: readFileSync(join(home, 'tls.key'), 'utf8'),
    certificate: readFileSync(join(home, 'tls.crt'), 'utf8'),
  }
  return {
    client,
    mode,
    checks: nodes,
    prints: {
      ...Object.fromEntries(
        nodes.map((each) => [String(each.node), fingerprintOf(each.node, each)]),
      ),
      platform: fingerprintOf('platform', client),
    },
  }
}
