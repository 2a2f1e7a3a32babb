import { existsSync, writeFileSync } from 'node:fs'
import { formatAmount } from '@custody/chains'
import { OperatorError } from '../command.ts'
import { callPlatform } from '../connect.ts'
import { linesOr, type Run } from './typed.ts'

interface Entry {
  asset: string
  decimals: number
  held: string
  operating: string
  owed: string
  arriving: string
  leaving: string
}
interface ReservesAnswer {
  id: string
  time: string
  hash: string
  signed_by: number[]
  assets: Entry[]
  short: string[]
  problems?: string[]
  networks: { network: string; from: { height: number }; to: { height: number } }[]
}

/**
 * Returns held funds less operating funds as a percentage of the liabilities, rounded down, so that
 * 99.999 is never shown as 100.
 */
function ratioOf({ held, operating, owed }: Entry): string {
  if (BigInt(owed) === 0n) return '–'
  const covered = BigInt(held) - BigInt(operating)
  const hundredths = covered < 0n ? 0n : (covered * 10_000n) / BigInt(owed)
  return `${hundredths / 100n}.${String(hundredths % 100n).padStart(2, '0')} %`
}

function lineOf(each: Entry, isShort: boolean): string {
  const show = (amount: string) => formatAmount(BigInt(amount), each.decimals)
  const moving = [
    ['arriving', each.arriving],
    ['leaving', each.leaving],
  ]
    .filter(([, amount]) => amount !== '0')
    .map(([what, amount]) => `, ${what} ${show(amount as string)}`)
    .join('')
  const amounts = `held ${show(each.held)} (operating ${show(each.operating)}), owed ${show(each.owed)}`
  return `${isShort ? 'SHORT ' : ''}${each.asset}: ${amounts}, ${ratioOf(each)}${moving}`
}

function textOf(reported: ReservesAnswer): string[] {
  const heights = reported.networks.map(
    ({ network, from, to }) =>
      `${network} ${from.height}${from.height === to.height ? '' : `–${to.height}`}`,
  )
  return [
    `${reported.id} of ${reported.time}, signed by nodes ${reported.signed_by.join(', ')}`,
    `SHA-256 ${reported.hash}`,
    `blocks: ${heights.join(', ')}`,
    ...reported.assets.map((each) => lineOf(each, reported.short.includes(each.asset))),
    ...(reported.problems ?? []).map((problem) => `a signer node did not sign: ${problem}`),
    ...(reported.short.length > 0
      ? [`LIABILITIES EXCEED RESERVES in ${reported.short.join(', ')}`]
      : []),
  ]
}

export const publish: Run = async ({ home }) => {
  const result = await callPlatform(home, 'reserves publish', {})
  const reported = result as unknown as ReservesAnswer
  return { result, text: textOf(reported), exitCode: reported.short.length > 0 ? 1 : 0 }
}

export const list: Run = async ({ home }) => {
  const result = await callPlatform(home, 'reserves list', {})
  const lines = (result as unknown as { statements: ReservesAnswer[] }).statements.map(
    ({ id, time, hash, short }) =>
      `${id}  ${time}  ${hash}${short.length > 0 ? `  liabilities exceed reserves in ${short.join(', ')}` : ''}`,
  )
  return { result, text: linesOr(lines, 'no statement has been published yet') }
}

function write(file: string, option: string, text: string): void {
  if (existsSync(file))
    throw new OperatorError(`--${option}: ${file} already exists; choose another file`)
  writeFileSync(file, text)
}

export const show: Run = async ({ home, words, values }) => {
  const { statement: to, holdings: listTo } = values
  const result = await callPlatform(home, 'reserves show', {
    id: words[0] ?? null,
    holdings: typeof listTo === 'string',
  })
  const { published, holdings, ...reported } = result
  if (typeof to === 'string') write(to, 'statement', JSON.stringify(published))
  if (typeof listTo === 'string') write(listTo, 'holdings', holdings as string)
  return { result: { ...reported, published }, text: textOf(reported as unknown as ReservesAnswer) }
}
