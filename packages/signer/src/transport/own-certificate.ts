import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import type { Server } from 'node:https'
import { join } from 'node:path'
import { pinOf } from '@custody/request-auth/pinned'
import type { Config } from '../config.ts'
import { reason, type Log } from '../log.ts'
import { presentCertificate } from './server.ts'

const DAY_MS = 86_400_000
/** Days before the end from which the log warns. */
const WARN_DAYS = 30
/** Interval in milliseconds at which the log repeats the warning. */
const WARN_EVERY_MS = DAY_MS

/** Returns when the TLS certificate that a node presents expires. */
export const certificateExpiry = ({ tlsCertificate }: Config): Date =>
  new X509Certificate(tlsCertificate).validToDate

/**
 * The TLS certificate of a running node. It presents a renewed `tls.crt` without a restart, and
 * logs a warning before the expiry. A certificate of another key is not used, because peers and
 * platform have pinned the key.
 */
export class OwnCertificate {
  readonly #config: Config
  readonly #server: Server
  readonly #now: () => number
  readonly #log: Log
  readonly #path: string
  /**
   * Identifies the file that was read last; a renewal replaces the file. Initially null, as the
   * file may have changed since the start.
   */
  #version: string | null = null
  #warnedAtMs = -Infinity

  constructor({
    config,
    server,
    now,
    log,
  }: {
    config: Config
    server: Server
    now: () => number
    log: Log
  }) {
    this.#config = config
    this.#server = server
    this.#now = now
    this.#log = log
    this.#path = join(config.home, 'tls.crt')
  }

  /**
   * Presents a renewed certificate, and warns. Called regularly; usually there is nothing to do.
   */
  check(): void {
    const version = this.#readVersion()
    if (version !== null && version !== this.#version) {
      this.#version = version
      this.#reload()
    }
    this.#warn()
  }

  #readVersion(): string | null {
    const stat = statSync(this.#path, { throwIfNoEntry: false })
    return stat === undefined ? null : `${stat.ino} ${stat.mtimeMs} ${stat.size}`
  }

  #reload(): void {
    try {
      const certificate = readFileSync(this.#path, 'utf8')
      if (certificate === this.#config.tlsCertificate) return
      if (pinOf(certificate) !== pinOf(this.#config.tlsCertificate))
        throw new Error('it has another key than tls.key')
      this.#config.tlsCertificate = certificate
      presentCertificate(this.#server, this.#config)
      this.#warnedAtMs = -Infinity
      this.#log('info', 'TLS certificate renewed', {
        expires: certificateExpiry(this.#config).toISOString(),
      })
    } catch (error) {
      this.#log(
        'error',
        'tls.crt was changed and cannot be used; the node presents the previous one',
        { reason: reason(error) },
      )
    }
  }

  #warn(): void {
    const nowMs = this.#now()
    const expiry = certificateExpiry(this.#config)
    const leftMs = expiry.getTime() - nowMs
    if (leftMs > WARN_DAYS * DAY_MS || nowMs - this.#warnedAtMs < WARN_EVERY_MS) return
    this.#warnedAtMs = nowMs
    const renew = `renew it: custody tls renew --home ${this.#config.home}`
    const [level, message] =
      leftMs > 0
        ? (['warn', 'the TLS certificate expires soon'] as const)
        : ([
            'alert',
            'the TLS certificate has expired: the platform and the peers reject this node',
          ] as const)
    this.#log(level, message, { expires: expiry.toISOString(), do: renew })
  }
}
