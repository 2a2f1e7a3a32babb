import { existsSync, readFileSync } from 'node:fs'
import type { KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { AuthError, parsePrivateKey, requestHeaders, signRequest } from '@custody/request-auth'
import { OperatorError } from './command.ts'

const METHODS = ['GET', 'POST', 'DELETE']

function readPrivateKey(file: string): KeyObject {
  let pem: string
  try {
    pem = readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new OperatorError(`--key: ${code === 'ENOENT' ? `there is no file ${file}` : code === 'EISDIR' ? `${file} is a folder` : `${file} cannot be read (${String(code)})`}`)
  }
  try {
    return parsePrivateKey(pem)
  } catch (error) {
    throw new OperatorError(`--key: ${file} ${error instanceof AuthError ? error.message : 'cannot be used'}`)
  }
}

/** Sends one signed request to the running platform and answers its body. */
export async function sendRequest(home: string, words: string[], values: Record<string, string | boolean | undefined>): Promise<{ result: Record<string, unknown>; text: string; exitCode: number }> {
  const [method = '', path = '', body] = words
  if (!METHODS.includes(method.toUpperCase()) || !path.startsWith('/')) throw new OperatorError('usage: custody request METHOD PATH [BODY] --api-key KEY --key FILE')
  const apiKey = values['api-key'] ?? process.env['CUSTODY_API_KEY']
  const keyFile = values['key'] ?? process.env['CUSTODY_KEY']
  if (typeof apiKey !== 'string') throw new OperatorError('--api-key (or CUSTODY_API_KEY) is needed')
  if (typeof keyFile !== 'string') throw new OperatorError('--key (or CUSTODY_KEY) is needed: the file of your private key')
  const privateKey = readPrivateKey(keyFile)
  const urlFile = join(home, 'url')
  const base = typeof values['url'] === 'string' ? values['url'] : existsSync(urlFile) ? readFileSync(urlFile, 'utf8') : null
  if (base === null) throw new OperatorError(`the platform does not run on ${home}: start it with "npm start", or give --url`)
  const signed = await signRequest({ apiKey, privateKey, method, uri: path, ...(body === undefined ? {} : { body }) })
  const response = await fetch(`${base.replace(/\/$/, '')}${path}`, { method: signed.method, headers: requestHeaders(signed, apiKey), ...(body === undefined ? {} : { body }) })
    .catch(() => { throw new OperatorError(`nothing answers at ${base}`) })
  const text = await response.text()
  let shown = text
  try {
    // Re-indented only where no digits can be lost by it.
    const parsed: unknown = JSON.parse(text)
    if (JSON.stringify(parsed) === text) shown = JSON.stringify(parsed, null, 2)
    return { result: { status: response.status, body: parsed }, text: `${response.status} ${response.statusText}\n${shown}`, exitCode: response.ok ? 0 : 1 }
  } catch {
    return { result: { status: response.status, body: text }, text: `${response.status} ${response.statusText}\n${shown}`, exitCode: response.ok ? 0 : 1 }
  }
}
