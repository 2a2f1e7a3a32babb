import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { printError, printJson, printLines, TerminalError } from '@custody/chains/terminal'
import { CERTIFICATE_DAYS } from './set-up/certificate.ts'
import { certificateStatus, renewCertificate } from './set-up/renew.ts'

/**
 * `custody tls status|renew`: the TLS certificate of a signer node or of the platform. Prints one
 * JSON object to standard output.
 */
const USAGE = `Usage: custody tls status --home HOME              Print the expiry date of the TLS certificate.
       custody tls renew --home HOME [--days N]    Renew the TLS certificate with the same key. A running node uses it within
                                                   seconds, without a restart.
HOME: home folder of a signer node, or the platform's folder with tls.key, tls.crt and peers.json (CUSTODY_SIGNERS)
N: validity in days, 1 to ${CERTIFICATE_DAYS} (default: ${CERTIFICATE_DAYS})`

async function main(): Promise<void> {
  const {
    values,
    positionals: [command, ...more],
  } = parseArgs({
    options: {
      home: { type: 'string' },
      days: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
    allowPositionals: true,
  })
  if (values.help) return printLines(USAGE.split('\n'))
  if (more.length > 0 || (command !== 'status' && command !== 'renew'))
    throw new TerminalError(...USAGE.split('\n'))
  if (!values.home) throw new TerminalError('--home: is required', ...USAGE.split('\n'))
  const home = resolve(values.home)
  if (command === 'status' && values.days !== undefined)
    throw new Error('--days: is allowed for tls renew only; omit it')
  const status =
    command === 'status'
      ? certificateStatus(home)
      : await renewCertificate(
          home,
          values.days === undefined ? CERTIFICATE_DAYS : Number(values.days),
        )
  printJson({ home, ...status }, 2)
}

main().catch((error: unknown) => {
  printError('tls', error)
  process.exitCode = 1
})
