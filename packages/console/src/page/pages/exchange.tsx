import { useState } from 'preact/hooks'
import { query } from '../api/http.ts'
import { mirror, ofSub, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type {
  ExchangeAccountWithBalances,
  ExchangeAddress,
  ExchangeTransfer,
  Overview,
  Page as PageOf,
  Transaction,
} from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { TransfersTable } from '../parts/exchange-transfers.tsx'
import { Button, Check, Dialog, LinkButton, onSubmit, Text } from '../parts/form.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Empty, Facts, Note, Page, ProblemNote, Skeleton } from '../parts/page.tsx'
import { amountError, amountOf, AssetChoice, useSequence } from '../parts/pick.tsx'
import { Amount, Id, tickerOf, Time } from '../parts/values.tsx'
import { AmountWorth } from '../worth/worth.tsx'
import { Status } from '../parts/status.tsx'
import { Table } from '../parts/table.tsx'
import { go } from '../router.ts'

/**
 * Deposit to an exchange: a transfer to the address that the exchange returned and the person has
 * checked.
 */
function Deposit({
  account,
  assets,
  onClose,
}: {
  account: ExchangeAccountWithBalances
  assets: readonly string[]
  onClose(): void
}) {
  const [asset, setAsset] = useState(assets[0] ?? '')
  const [text, setText] = useState('')
  const [isSeen, setSeen] = useState(false)
  const { sequence } = useSequence()
  const { isBusy, problem, run } = useAction()
  const place = useRead<ExchangeAddress>(
    asset === ''
      ? null
      : mirror(`/dac/v1/exchange-accounts/${account.id}/deposit-address${query({ asset })}`),
  )
  const amount = amountOf(text)
  const to = place.data
  const submit = () =>
    run(async () => {
      if (to === undefined) return
      const made = await sign<Transaction>('POST', '/dac/v1/transaction', {
        asset,
        amount,
        source_type: 'INTERNAL',
        destination_type: 'EXCHANGE',
        destination_id: account.id,
        destination_address: to.address,
        sequence_id: sequence,
        ...(to.address_tag === null ? {} : { address_tag: to.address_tag }),
        ...(to.changed ? { confirm_address: to.address } : {}),
      })
      toast('The transfer is ordered')
      go(pageAt(`/transactions/${made.id}`))
    })
  return (
    <Dialog title={`Send to ${account.label}`} onClose={onClose}>
      <form class="stack" onSubmit={onSubmit(submit)}>
        <AssetChoice value={asset} onValue={setAsset} of={assets} />
        <Text
          label="Amount"
          value={text}
          onValue={setText}
          inputMode="decimal"
          suffix={tickerOf(asset)}
          required
          maxLength={60}
          error={amountError(text) ?? (problem?.field === 'amount' ? problem.message : null)}
        />
        {to === undefined ? (
          place.problem === null ? (
            <Skeleton lines={2} />
          ) : (
            <ProblemNote problem={place.problem} retry={place.reload} />
          )
        ) : (
          <>
            <div>
              <p class="label">{account.exchange} takes it at</p>
              <Id value={to.address} label="address" isWhole />
              {to.address_tag === null ? null : (
                <p>
                  Tag <Id value={to.address_tag} label="tag" isWhole />
                </p>
              )}
            </div>
            {to.changed ? (
              <Note tone="bad">
                <p>
                  Another address than last time (
                  <Id value={to.previous?.address} label="last address" />
                  ). Compare it with the exchange’s own page.
                </p>
              </Note>
            ) : null}
            <Check
              label="It is the address on the exchange’s own page"
              value={isSeen}
              onValue={setSeen}
            />
          </>
        )}
        <KeyNotice />
        {problem?.field === 'amount' ? null : <ProblemNote problem={problem} />}
        <Button
          kind="primary"
          type="submit"
          icon="key"
          isBusy={isBusy}
          disabled={amount === null || to === undefined || !isSeen}
        >
          Sign and send
        </Button>
      </form>
    </Dialog>
  )
}

function Withdraw({
  account,
  assets,
  onClose,
  onDone,
}: {
  account: ExchangeAccountWithBalances
  assets: readonly string[]
  onClose(): void
  onDone(): void
}) {
  const [asset, setAsset] = useState(assets[0] ?? '')
  const [text, setText] = useState('')
  const { sequence } = useSequence()
  const { isBusy, problem, run } = useAction()
  const amount = amountOf(text)
  const held = account.balances.find((each) => each.asset === tickerOf(asset))
  return (
    <Dialog title={`Bring back from ${account.label}`} onClose={onClose}>
      <form
        class="stack"
        onSubmit={onSubmit(() =>
          run(async () => {
            await sign<ExchangeTransfer>('POST', '/dac/v1/exchange-withdrawals', {
              exchange_account: account.id,
              asset,
              amount,
              sequence_id: sequence,
            })
            toast('The withdrawal is ordered')
            onDone()
          }),
        )}
      >
        <AssetChoice
          value={asset}
          onValue={setAsset}
          of={assets}
          hint="It goes to the first address of this wallet"
        />
        <Text
          label="Amount"
          value={text}
          onValue={setText}
          inputMode="decimal"
          suffix={tickerOf(asset)}
          required
          maxLength={60}
          error={amountError(text) ?? (problem?.field === 'amount' ? problem.message : null)}
          hint={
            held === undefined ? (
              'The exchange takes its fee'
            ) : (
              <>
                Available there: <Amount value={held.available} of={asset} />. The exchange takes
                its fee.
              </>
            )
          }
        />
        <KeyNotice />
        {problem?.field === 'amount' ? null : <ProblemNote problem={problem} />}
        <Button kind="primary" type="submit" icon="key" isBusy={isBusy} disabled={amount === null}>
          Sign and withdraw
        </Button>
      </form>
    </Dialog>
  )
}

const IDENTITY = {
  proven: 'Yes',
  unproven: 'Not proven',
  duplicate: 'No, a duplicate',
} as const

const yes = (value: boolean | null) =>
  value === null ? 'Not told by the exchange' : value ? 'Yes' : 'No'

export function ExchangePage({ id }: { id: string }) {
  const path = `/dac/v1/exchange-accounts/${encodeURIComponent(id)}`
  const reading = useRead<ExchangeAccountWithBalances>(
    mirror(path),
    /^(?:exchange_account|order|exchange_transfer)\./,
  )
  const transfers = useRead<PageOf<ExchangeTransfer>>(
    mirror(`/dac/v1/exchange-transfers${query({ exchange_account: id, limit: 20 })}`),
    /^exchange_transfer\./,
  )
  const overview = useRead<Overview>(ofSub('/overview'))
  const [dialog, setDialog] = useState<'deposit' | 'withdraw' | 'unlink' | null>(null)
  const { isBusy, problem, run } = useAction()
  const account = reading.data
  const back = { href: pageAt('/exchanges'), word: 'Exchanges' }
  if (account === undefined) {
    return (
      <Page title="Exchange account" back={back}>
        {reading.problem === null ? (
          <Skeleton lines={6} />
        ) : (
          <ProblemNote problem={reading.problem} retry={reading.reload} />
        )}
      </Page>
    )
  }
  const assets = overview.data?.balances.map(({ asset }) => asset) ?? []
  const close = () => setDialog(null)
  return (
    <Page
      title={account.label}
      back={back}
      lead={
        <>
          {account.exchange} · <Status of={account.status} />
        </>
      }
      actions={
        <>
          <LinkButton href={pageAt(`/orders${query({ exchange_account: id })}`)}>Orders</LinkButton>
          <Button onClick={() => setDialog('deposit')} disabled={assets.length === 0}>
            Send there
          </Button>
          {account.allow_withdrawal ? (
            <Button onClick={() => setDialog('withdraw')} disabled={assets.length === 0}>
              Bring back
            </Button>
          ) : null}
          <Button
            isBusy={isBusy}
            onClick={() =>
              run(async () => {
                const { ok, error } = await sign<{ ok: boolean; error: string | null }>(
                  'POST',
                  `${path}/test`,
                  {},
                )
                toast(
                  ok ? 'The exchange accepts the key' : (error ?? 'The exchange refuses the key'),
                  ok ? 'ok' : 'bad',
                )
                reading.reload()
              })
            }
          >
            Test the key
          </Button>
          <Button kind="danger" onClick={() => setDialog('unlink')}>
            Unlink
          </Button>
        </>
      }
    >
      <ProblemNote problem={problem} />
      {account.status === 'failing' ? (
        <Note tone="bad">
          <p>The exchange refuses its key: {account.reason}</p>
        </Note>
      ) : null}
      {account.warnings.map((warning) => (
        <Note key={warning} tone="warn">
          <p>{warning.charAt(0).toUpperCase() + warning.slice(1)}.</p>
        </Note>
      ))}
      {account.difference.length === 0 ? null : (
        <Note tone="bad">
          <p>
            The total at the exchange still differs from the ledger: somebody traded or moved coins
            there manually.
          </p>
          <ul class="plain-list">
            {account.difference.map((each) => (
              <li key={each.asset}>
                {each.asset}: books <Amount value={each.ledger} />, exchange{' '}
                <Amount value={each.venue} />
              </li>
            ))}
          </ul>
          <Button
            class="small"
            isBusy={isBusy}
            onClick={() =>
              run(async () => {
                await sign('PATCH', path, { accept_difference: true })
                toast('The ledger now agrees with the exchange')
                reading.reload()
              })
            }
          >
            Record the difference in the ledger
          </Button>
        </Note>
      )}
      <div class="columns">
        <div class="column-main">
          <Card
            title="Balances"
            lead={
              <>
                Asked <Time at={account.balances_at} />
              </>
            }
            isBare
          >
            <Table
              label="Balances"
              reading={reading}
              rows={account.balances}
              keyOf={({ asset }) => asset}
              columns={[
                { head: 'Coin', cell: ({ asset }) => asset },
                {
                  head: 'Available',
                  isNumber: true,
                  isMinor: true,
                  cell: ({ available }) => <Amount value={available} />,
                },
                {
                  head: 'In all',
                  isNumber: true,
                  cell: ({ asset, total: amount, price_usd: price }) => (
                    <AmountWorth of={{ amount, asset, price }} />
                  ),
                },
              ]}
              empty={<Empty icon="exchange" title="The account has no balance" />}
            />
          </Card>
          <Card title="Transfers to and from exchanges" isBare>
            <TransfersTable reading={transfers} rows={transfers.data?.data} />
          </Card>
        </div>
        <div class="column-side">
          <Card title="Key">
            <Facts
              of={[
                ['Ends with', <code key="hint">{account.key_hint}</code>],
                ['Only link of its account', IDENTITY[account.identity]],
                ['May trade', yes(account.permissions.trade)],
                ['May withdraw', yes(account.permissions.withdraw)],
                ['Bound to addresses', yes(account.permissions.ip_restricted)],
                ['Withdrawals from here', account.allow_withdrawal ? 'Allowed' : 'Not allowed'],
                ['Checked', <Time key="checked" at={account.checked_at} />],
                ['Linked', <Time key="made" at={account.created_at} />],
              ]}
            />
          </Card>
        </div>
      </div>
      {dialog === 'deposit' ? <Deposit account={account} assets={assets} onClose={close} /> : null}
      {dialog === 'withdraw' ? (
        <Withdraw
          account={account}
          assets={assets}
          onClose={close}
          onDone={() => {
            close()
            transfers.reload()
          }}
        />
      ) : null}
      {dialog === 'unlink' ? (
        <Dialog title="Unlink the account" onClose={close}>
          <p>
            Its secrets are erased here. What it holds stays at the exchange; revoke the key there
            too.
          </p>
          <KeyNotice />
          <ProblemNote problem={problem} />
          <div class="row">
            <Button
              kind="danger"
              icon="key"
              isBusy={isBusy}
              onClick={() =>
                run(async () => {
                  await sign('DELETE', path, {})
                  toast('The account is unlinked')
                  go(pageAt('/exchanges'))
                })
              }
            >
              Unlink
            </Button>
            <Button onClick={close}>Keep it</Button>
          </div>
        </Dialog>
      ) : null}
    </Page>
  )
}
