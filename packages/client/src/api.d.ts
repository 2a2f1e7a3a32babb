// Made by scripts/api-types.mjs.
// document 43820ac1f977988f1d2228eed3dc4ee3927a420be7310532d8a8488619443e17
// types 1db7171466e8d8995cf218ea078670e57cf1be50651ba5b95e13122fea1cace1
/** Digits with a decimal point at most, such as `0.5`: a double cannot hold 18 decimals. */
export type Decimal = string;
export interface components {
    schemas: {
        Address: {
            id: string;
            asset: string;
            address: string;
            address_tag: string | null;
            label: string | null;
            /** @description For a QR code: BIP21, EIP-681, Solana Pay, SEP-7, CIP-13, xrpl:; null where wallets agree on none (TRX) */
            payment_uri: string | null;
            /** @description [sub-account, chain, index], not hardened, below the key of GET /dac/v1/keys */
            path: number[];
            /** Format: date-time */
            created_at: string;
        };
        AddressPage: {
            data: components["schemas"]["Address"][];
            /** @description Pass it as `after` to read on; null at the end of the list */
            next: string | null;
            /** @description Whether the list goes on */
            has_more: boolean;
        };
        AmlSettings: {
            provider: string;
            /** @description Masked */
            aml_token: string;
            aml_risk_levels: string;
            aml_deposit: boolean;
            aml_withdrawal: boolean;
            /** Format: date-time */
            updated_at: string;
            /** @description Set where a level passes although a lower one is held; null: there is none */
            warning: string | null;
        };
        Asset: {
            /** @description Ticker; what every other operation takes as `asset` */
            asset_name: string;
            name: string;
            ticker: string;
            blockchain: string;
            network: string;
            /** @example utxo */
            family: string;
            decimals: number;
            /** @enum {string} */
            type: "native" | "token";
            contract_address: string | null;
            fee_asset: string;
            /** @description Payments of the asset may carry an `address_tag`: a destination tag (XRP) or a memo (XLM) */
            takes_tag: boolean;
            /** @description Many addresses of the asset are complete only with their `address_tag`, exchanges’ above all: ask for it together with the address, and send without one only where the payee has none */
            requires_tag: boolean;
            /**
             * Format: decimal
             * @description In the asset’s native unit
             */
            min_withdrawal: Decimal;
            /** @description Who issues the token on this network, or whose bridge does; null for native coins */
            issuer: string | null;
            /** @description The token stands for one that is locked on another network, so that its value also depends on the bridge */
            bridged: boolean;
            /**
             * @description deprecated: new wallets and addresses only where the operator allows them; what is held can be sent. Retired assets are not listed
             * @enum {string}
             */
            status: "active" | "deprecated" | "retired";
            /** @description Day from which `status` holds, as YYYY-MM-DD; null while it is active */
            status_since: string | null;
            status_reason: string | null;
            /** @description New wallets and addresses are made */
            is_active: boolean;
        };
        Balance: {
            wallet_id: string;
            asset: string;
            /** @example BTC */
            network: string;
            /** @enum {string} */
            status: "active" | "inactive";
            /**
             * Format: decimal
             * @description What can be spent: `balance` of GET /dac/v1/wallets
             */
            available: Decimal;
            /**
             * Format: decimal
             * @description `total` less `available`: reserved for transfers, frozen, staked, cooling down, not swept yet, or what must stay
             */
            pending: Decimal;
            /**
             * Format: decimal
             * @description All that is held on the chain: `omnibus_balance` of GET /dac/v1/wallets
             */
            total: Decimal;
        };
        CancelInvoiceRequest: Record<string, never>;
        CancelOrderRequest: Record<string, never>;
        CancelTransactionRequest: Record<string, never>;
        CertifiedKey: {
            workspace: string;
            /** @enum {string} */
            curve: "secp256k1" | "ed25519";
            key_id: string;
            /** @description lower-case hex */
            public_key: string;
            /** @description lower-case hex */
            chain_code: string;
            /** @description Network mode that the nodes certified the key for */
            mode: string;
            epoch: number;
            certificates: {
                node: number;
                /** @description Ed25519, lower-case hex, over custody/key-certificate/v1, a line feed, and the JSON of the fields above */
                signature: string;
            }[];
        };
        ChangeExchangeAccountRequest: {
            label?: string | null;
            api_key?: string | null;
            api_secret?: string | null;
            passphrase?: string | null;
            /** @description A key that may withdraw is refused unless this is true */
            allow_withdrawal?: boolean | null;
            /** @description Books the difference that is shown: what was traded, paid in or paid out there by hand */
            accept_difference?: true | null;
        };
        ChangeWebhookRequest: {
            /** @description https, and a public address; http and loopback on the local network */
            url?: string | null;
            /** @description Names of events, `group.*` or `*` */
            events?: string[] | null;
            description?: string | null;
            disabled?: boolean | null;
            /** @description classic: transactions in the shape of earlier integrations; docs/webhooks.md lists its fields */
            format?: ("standard" | "classic") | null;
        };
        Checkout: {
            inv_id: string;
            /** @enum {string} */
            inv_status: "Pending" | "Processing" | "Paid" | "Expired" | "Invalid";
            exception: ("late" | "partial" | "over") | null;
            merchant: string;
            memo: string | null;
            order_id: string | null;
            fiat: string | null;
            fiat_amount: string | null;
            /** Format: date-time */
            created_at: string;
            expiry: string;
            /** @description The platform’s time, to count down by */
            now: string;
            assets: {
                asset: string;
                ticker: string;
                name: string;
                network: string;
                network_name: string;
                takes_tag: boolean;
                requires_tag: boolean;
                /** @description Decimal, exact; a text, since browsers read numbers as doubles */
                crypto_amount: string;
            }[];
            selected: {
                asset: string;
                ticker: string;
                name: string;
                network: string;
                network_name: string;
                address: string;
                address_tag: string | null;
                tag_name: string | null;
                /** @description Decimal, exact; a text, since browsers read numbers as doubles */
                crypto_amount: string;
                /** @description Decimal, exact; a text, since browsers read numbers as doubles */
                paid_amount: string;
                /** @description Decimal, exact; a text, since browsers read numbers as doubles */
                due_amount: string;
                payment_uri: string | null;
                rate: string | null;
                /** Format: date-time */
                rate_at: string | null;
            } | null;
            payments: {
                hash: string;
                asset: string;
                ticker: string;
                /** @description Decimal, exact; a text, since browsers read numbers as doubles */
                amount: string;
                /** @enum {string} */
                status: "seen" | "detected" | "confirmed" | "held" | "reverted" | "dropped";
                confirmations: number;
                required: number;
                counts: boolean;
                /** Format: date-time */
                seen_at: string;
                explorer_url: string | null;
            }[];
            success_url: string | null;
            failed_url: string | null;
            cancelled: boolean;
        };
        ChooseCheckoutAssetRequest: {
            /**
             * @description An `asset_name` of the assets list; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
        };
        CoinAside: {
            id: string;
            /**
             * @description The coin of the network, of which the output holds `amount`
             * @example BCH
             */
            asset: string;
            /** @example BCH */
            network: string;
            /**
             * @description The transaction that made the output
             * @example 5f1c8a7d0e3b49d2a6c4f7b8e9d0c1a2b3f4e5d6c7a8b9f0e1d2c3b4a5f6e7d8
             */
            txid: string;
            /** @description Index of the output in its transaction */
            vout: number;
            /**
             * @description Address of the sub-account that the output pays
             * @example bitcoincash:qpm2qsznhks23z7629mms6s0cwef74vcwvy22gdx6a
             */
            address: string;
            /**
             * Format: decimal
             * @description Coins of `asset` in the output. They are in no balance
             */
            amount: Decimal;
            /**
             * @description Why the output is not spent: it carries CashTokens, which a transfer would burn
             * @enum {string}
             */
            reason: "CASH_TOKENS";
            /** @description Null if the node did not return the tokens in a valid form */
            token: {
                /**
                 * @description Token category, 64 hexadecimal digits
                 * @example 89cad9e3e34280eb1e8bc420542c00a7fcc01002b663dbf7f38bceddf80e680c
                 */
                category: string;
                /**
                 * @description Fungible tokens in base units, as decimal digits; `0` where there are none
                 * @example 150000000
                 */
                amount: string;
                /** @description The non-fungible token; null: there is none */
                nft: {
                    /** @enum {string} */
                    capability: "none" | "mutable" | "minting";
                    /**
                     * @description In hexadecimal digits; may be empty
                     * @example 0a
                     */
                    commitment: string;
                } | null;
            } | null;
            /** @example 912345 */
            block_height: number;
            /** @example 000000000000000000d1c2b3a4f5e6d7c8b9a0f1e2d3c4b5a6f7e8d9c0b1a2f3 */
            block_hash: string;
            /**
             * Format: date-time
             * @description When the scan read its block
             */
            found_at: string;
        };
        Conversion: {
            id: string;
            /** @enum {string} */
            status: "quoted" | "expired" | "ordered";
            from_asset: string;
            to_asset: string;
            /**
             * Format: decimal
             * @description Of from_asset, as it was asked for
             */
            amount: Decimal;
            /**
             * Format: decimal
             * @description Of to_asset, after the exchange’s fee, as the book stood
             */
            receive: Decimal;
            price: Decimal | null;
            exchange_account: string;
            exchange: string;
            market: string;
            /** @enum {string} */
            side: "buy" | "sell";
            /**
             * Format: decimal
             * @description Decimal, exact
             */
            order_amount: Decimal;
            /**
             * Format: decimal
             * @description No part of it is done at a worse price
             */
            limit_price: Decimal;
            /** Format: date-time */
            expires_at: string;
            /** @description What the other accounts would give, or why they cannot */
            others: {
                exchange_account: string;
                exchange: string;
                receive: Decimal | null;
                reason: string | null;
            }[];
            order: components["schemas"]["Order"] | null;
            /** Format: date-time */
            created_at: string;
        };
        CreateAddressRequest: {
            /**
             * @description An `asset_name` of the assets list; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            label?: string | null;
        };
        CreateConversionRequest: {
            /** @description Id of a quote; else the fields of one */
            quote?: string | null;
            /** @description A coin at the exchange (BTC, USD), or an asset of ours, whose coin it is */
            from_asset?: string | null;
            /** @description An `asset_name` of the assets list; case-sensitive */
            to_asset?: string | null;
            /** @description Of from_asset, exact */
            amount?: (Decimal | string) | null;
            /** @description Ids of exchange accounts; all of the sub-account’s where it is absent */
            accounts?: string[] | null;
            /** @description Idempotency key, unique within the sub-account’s conversions; a quote is one itself */
            sequence_id?: string | null;
        };
        CreateExchangeAccountRequest: {
            /**
             * @description Its name in GET /dac/v1/exchanges
             * @example kraken
             */
            exchange: string;
            label: string;
            api_key: string;
            api_secret: string;
            passphrase?: string | null;
            /** @description A key that may withdraw is refused unless this is true */
            allow_withdrawal?: boolean | null;
        };
        CreateExchangeWithdrawalRequest: {
            /** @description Id of an exchange account whose key may withdraw */
            exchange_account: string;
            /**
             * @description An `asset_name` of the assets list; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            /** @description Decimal in the asset’s native unit, exact; a number or a text */
            amount: Decimal | string;
            /** @description One of the wallet’s own addresses; its first where it is absent */
            address?: string | null;
            address_tag?: string | null;
            /** @description Idempotency key, unique within the sub-account’s withdrawals from exchanges */
            sequence_id?: string | null;
        };
        CreateForwardingRuleRequest: {
            /**
             * @description An `asset_name` of the assets list; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            /** @description Incoming funds are forwarded when they have come to this much */
            min_amount: Decimal | string;
            destination_address: string;
            address_tag?: string | null;
            /** @description All forwards of any 24 hours move no more */
            daily_cap: Decimal | string;
            /**
             * Format: date-time
             * @description ISO 8601 in UTC
             */
            expires_at: string;
        };
        CreateInvoiceRequest: {
            fiat?: "USD" | null;
            /** @description What the payer owes, in the currency `fiat`; six decimals at most */
            fiat_amount?: (Decimal | string) | null;
            /** @description In place of a currency: the asset that `amount` is counted in */
            asset?: string | null;
            amount?: (Decimal | string) | null;
            /** @description What the payer may choose; without it every asset that the sub-account has an active wallet of, or `asset` alone */
            assets?: string[] | null;
            /** @description Shown to the payer */
            memo?: string | null;
            /** @description Your own number of the order; shown to the payer */
            order_id?: string | null;
            payer?: {
                email?: string | null;
                name?: string | null;
            } | null;
            webhook_url?: string | null;
            success_url?: string | null;
            failed_url?: string | null;
            expires_in?: number | null;
            tolerance?: (Decimal | string) | null;
            /** @description Idempotency key, unique within the sub-account */
            sequence_id?: string | null;
        };
        CreateOrderRequest: {
            /** @description Id of an exchange account */
            exchange_account: string;
            /**
             * @description Such as BTC/USD
             * @example BTC/USD
             */
            market: string;
            /** @enum {string} */
            side: "buy" | "sell";
            /** @enum {string} */
            type: "market" | "limit";
            /** @description In the base coin, on the market’s grid */
            amount?: (Decimal | string) | null;
            /** @description In the quote coin, in place of amount: the amount is what it comes to, rounded down to the grid */
            quote_amount?: (Decimal | string) | null;
            /** @description Of a limit order, on the market’s grid */
            price?: (Decimal | string) | null;
            /** @description GTC for a limit order, IOC for a market order, where it is absent */
            time_in_force?: ("GTC" | "IOC" | "FOK") | null;
            /** @description Refused by the exchange rather than filled at once */
            post_only?: boolean | null;
            /** @description Of a market order: how much worse than the best price it may be, in hundredths of a percent; 100 where it is absent */
            max_slippage_bps?: number | null;
            /** @description Idempotency key, unique within the sub-account’s orders */
            sequence_id?: string | null;
        };
        CreateTransactionRequest: {
            /**
             * @description An `asset_name` of the assets list; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            /** @description Decimal in the asset’s native unit, exact; a number or a text */
            amount: Decimal | string;
            destination_address: string;
            /**
             * @description EXCHANGE: destination_id names an exchange account, and destination_address is where that exchange takes the asset
             * @enum {string}
             */
            destination_type: "EXTERNAL" | "EXCHANGE";
            /** @constant */
            source_type: "INTERNAL";
            /** @description Idempotency key, unique within the wallet */
            sequence_id?: string | null;
            /** @description Your own note; never put on chain. Refused where it has the form of a tag and the asset takes one that is missing */
            memo?: string | null;
            address_tag?: string | null;
            /** @description Id of an exchange account, with destination_type EXCHANGE */
            destination_id?: string | null;
            /** @description The address of an exchange once more, where it is another than last time */
            confirm_address?: string | null;
            /** @description In the unit of the chain family; the signer nodes hold to it */
            fee_rate?: (Decimal | string) | null;
            fee_level?: ("low" | "medium" | "high") | null;
            /** @description Accepted from older clients; means nothing */
            type?: "Withdraw" | null;
            /** @description Accepted from older clients; means nothing */
            ts?: (number | string) | null;
        };
        CreateWalletAliasRequest: {
            /**
             * @description An `asset_name` of the assets list; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
        };
        CreateWalletRequest: {
            /**
             * @description An `asset_name` of the assets list; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
        };
        CreateWebhookRequest: {
            /**
             * Format: uri
             * @description https, and a public address; http and loopback on the local network
             */
            url: string;
            /** @description Names of events, `group.*` or `*` */
            events: string[];
            description?: string | null;
            disabled?: boolean | null;
            /** @description classic: transactions in the shape of earlier integrations; docs/webhooks.md lists its fields */
            format?: ("standard" | "classic") | null;
        };
        DeleteExchangeAccountResponse: {
            id: string;
            /** @constant */
            deleted: true;
        };
        DeleteForwardingRuleRequest: Record<string, never>;
        DeleteWebhookResponse: {
            id: string;
            /** @constant */
            deleted: true;
        };
        Delivery: {
            id: string;
            webhook_id: string;
            /** @description In `webhook-id` */
            event_id: string;
            type: string;
            object: string;
            /** @enum {string} */
            status: "pending" | "delivered" | "failed";
            tries: number;
            tries_left: number;
            /** Format: date-time */
            next_try_at: string | null;
            request: {
                /** @description The very bytes that are signed and sent */
                body: string;
            };
            /** @description The latest 12, the oldest first */
            attempts: {
                at: string;
                url: string;
                duration_ms: number;
                status: number | null;
                error: string | null;
                /** @description The first 1,000 characters */
                answer: string | null;
            }[];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        EstimateFeeRequest: {
            /**
             * @description An `asset_name` of the assets list; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            /** @description Decimal in the asset’s native unit, exact; a number or a text */
            fee_rate: Decimal | string;
            /** @description Decimal in the asset’s native unit, exact; a number or a text */
            amount?: (Decimal | string) | null;
            /** @description Where it is known, rent and activation are exact, and so is what a token’s contract takes */
            destination_address?: string | null;
        };
        EstimateFeeResponse: {
            asset: string;
            /**
             * Format: decimal
             * @description All that the transfer pays, in the network’s native coin; `rent`, `activation` and `l1_fee` are parts of it
             */
            fee: Decimal;
            /** Format: decimal */
            fee_rate: Decimal;
            fee_rate_unit: string;
            fee_asset: string;
            /**
             * @description `wallet`: from the caller’s own coins; `typical`: one input and two outputs, or usual gas
             * @enum {string}
             */
            basis: "wallet" | "typical";
            /**
             * Format: decimal
             * @description Part of `fee`: deposit of the receiver’s token account (Solana) where it has none; without a destination_address it is assumed to have none
             */
            rent?: Decimal;
            /**
             * Format: decimal
             * @description Part of `fee`: what creating the receiver’s account costs (Tron), likewise; it takes the place of bandwidth
             */
            activation?: Decimal;
            /**
             * Format: decimal
             * @description Part of `fee` that a roll-up of the OP Stack charges on top of gas: for publishing on the chain below and its operator
             */
            l1_fee?: Decimal;
        };
        ExchangeAccount: {
            id: string;
            exchange: string;
            label: string;
            /**
             * @description failing: the exchange refused the key when it was last asked
             * @enum {string}
             */
            status: "active" | "failing";
            reason: string | null;
            /** @description Last characters of the key */
            key_hint: string;
            permissions: {
                /** @description null: the exchange does not tell */
                trade: boolean | null;
                /** @description null: the exchange does not tell */
                withdraw: boolean | null;
                /** @description null: the exchange does not tell */
                ip_restricted: boolean | null;
            };
            allow_withdrawal: boolean;
            warnings: string[];
            /** Format: date-time */
            checked_at: string;
            /** @description Where the exchange goes on saying another total than the books */
            difference: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                ledger: Decimal;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                venue: Decimal;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                difference: Decimal;
            }[];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        ExchangeAccountTest: {
            id: string;
            exchange: string;
            label: string;
            /**
             * @description failing: the exchange refused the key when it was last asked
             * @enum {string}
             */
            status: "active" | "failing";
            reason: string | null;
            /** @description Last characters of the key */
            key_hint: string;
            permissions: {
                /** @description null: the exchange does not tell */
                trade: boolean | null;
                /** @description null: the exchange does not tell */
                withdraw: boolean | null;
                /** @description null: the exchange does not tell */
                ip_restricted: boolean | null;
            };
            allow_withdrawal: boolean;
            warnings: string[];
            /** Format: date-time */
            checked_at: string;
            /** @description Where the exchange goes on saying another total than the books */
            difference: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                ledger: Decimal;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                venue: Decimal;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                difference: Decimal;
            }[];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            ok: boolean;
            /** @description Why the exchange did not answer, or refused the key */
            error: string | null;
        };
        ExchangeAccountWithBalances: {
            id: string;
            exchange: string;
            label: string;
            /**
             * @description failing: the exchange refused the key when it was last asked
             * @enum {string}
             */
            status: "active" | "failing";
            reason: string | null;
            /** @description Last characters of the key */
            key_hint: string;
            permissions: {
                /** @description null: the exchange does not tell */
                trade: boolean | null;
                /** @description null: the exchange does not tell */
                withdraw: boolean | null;
                /** @description null: the exchange does not tell */
                ip_restricted: boolean | null;
            };
            allow_withdrawal: boolean;
            warnings: string[];
            /** Format: date-time */
            checked_at: string;
            /** @description Where the exchange goes on saying another total than the books */
            difference: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                ledger: Decimal;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                venue: Decimal;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                difference: Decimal;
            }[];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            balances: components["schemas"]["ExchangeBalance"][];
            /** Format: date-time */
            balances_at: string;
            /** @description How old the balances are, in milliseconds */
            balances_age_ms: number;
        };
        ExchangeBalance: {
            asset: string;
            /**
             * Format: decimal
             * @description Decimal, exact
             */
            available: Decimal;
            /**
             * Format: decimal
             * @description Decimal, exact
             */
            total: Decimal;
            /**
             * Format: decimal
             * @description null: no current price
             */
            usd: Decimal | null;
        };
        ExchangeDepositAddress: {
            address: string;
            address_tag: string | null;
            asset: string;
            network: string;
            /** @description Another than the last transfer went to: confirm_address must name it */
            changed: boolean;
            previous: {
                address: string;
                address_tag: string | null;
            } | null;
        };
        ExchangeTransfer: {
            id: string;
            exchange_account: string;
            exchange: string;
            /** @enum {string} */
            direction: "to_exchange" | "from_exchange";
            asset: string;
            /**
             * Format: decimal
             * @description Decimal, exact
             */
            amount: Decimal;
            /** @description What the exchange credited */
            credited: Decimal | null;
            /** @description What the exchange took for a withdrawal, out of the amount or beside it */
            fee: Decimal | null;
            address: string;
            address_tag: string | null;
            /** @enum {string} */
            status: "pending" | "completed" | "failed" | "unknown";
            /**
             * @description NEW: not asked for; SENDING; ASKING: the answer was lost, and the exchange is asked; WITHDRAWING: the exchange has it; MOVING: on the chain; DONE: credited where it goes; FAILED
             * @enum {string}
             */
            sub_status: "NEW" | "SENDING" | "ASKING" | "WITHDRAWING" | "MOVING" | "DONE" | "FAILED";
            /** @description The transfer that brings it, or the deposit that it arrived as */
            transaction_id: string | null;
            /** @description By which the exchange knows it */
            exchange_transfer_id: string | null;
            hash: string | null;
            reason: string | null;
            /** @description It takes longer than it should */
            overdue: boolean;
            sequence_id: string | null;
            version: number;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        ForwardingRule: {
            id: string;
            asset: string;
            /** @enum {string} */
            status: "pending" | "active" | "paused" | "expired" | "deleting" | "deleted";
            /** Format: decimal */
            min_amount: Decimal;
            /** Format: decimal */
            daily_cap: Decimal;
            destination_address: string;
            address_tag: string | null;
            /** Format: date-time */
            expires_at: string;
            /**
             * Format: decimal
             * @description Came in since the rule was made and was not forwarded yet
             */
            waiting: Decimal;
            /** @description Why what waits was not forwarded */
            reason: string | null;
            /** @description Of a deleted rule: hashes of forwards that are signed and not final; they may still be broadcast */
            outstanding: string[];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        FrozenAddress: {
            asset: string;
            network: string;
            address: string;
            address_tag: string | null;
            source: string;
            risk_level: string;
            transaction_id: string;
            /** Format: date-time */
            frozen_at: string;
            /** @description Transactions that wait for it */
            held: number;
        };
        GasTank: {
            id: string | null;
            network: string;
            asset: string;
            address: string | null;
            /** Format: decimal */
            balance: Decimal;
            /** Format: decimal */
            threshold: Decimal;
            /** @enum {string} */
            status: "ok" | "low" | "empty";
            /**
             * Format: decimal
             * @description Fuel of the tank’s that transactions left at addresses; used first
             */
            float: Decimal;
            /** Format: decimal */
            fee_cap: Decimal | null;
            /** Format: decimal */
            max_gas_price: Decimal | null;
        };
        Invoice: {
            inv_id: string;
            /** @enum {string} */
            inv_status: "Pending" | "Processing" | "Paid" | "Expired" | "Invalid";
            exception: ("late" | "partial" | "over") | null;
            fiat: string | null;
            /** Format: decimal */
            fiat_amount: Decimal | null;
            /** @description The one that was chosen last; null: the payer has not chosen */
            asset: string | null;
            address: string | null;
            address_tag: string | null;
            path: number[] | null;
            crypto_amount: Decimal | null;
            paid_amount: Decimal | null;
            due_amount: Decimal | null;
            payment_uri: string | null;
            /** Format: date-time */
            expiry: string;
            checkout_url: string;
            /** @description What it may be paid in; amounts and rates never change */
            assets: {
                asset: string;
                network: string;
                takes_tag: boolean;
                requires_tag: boolean;
                /**
                 * Format: decimal
                 * @description Decimal in the asset’s native unit, exact
                 */
                crypto_amount: Decimal;
                /** Format: decimal */
                rate: Decimal | null;
                rate_at: string | null;
                address: string | null;
                address_tag: string | null;
                path: number[] | null;
            }[];
            /** @description The first 10000, the oldest first */
            payments: components["schemas"]["InvoicePayment"][];
            /** @description The latest 10000 */
            refunds: {
                transaction_id: string;
                asset: string;
                /**
                 * Format: decimal
                 * @description Decimal in the asset’s native unit, exact
                 */
                amount: Decimal;
                /** @enum {string} */
                status: "pending" | "confirmed" | "failed";
                hash: string | null;
            }[];
            /** @description Credited and not given back */
            refundable: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Decimal in the asset’s native unit, exact
                 */
                amount: Decimal;
            }[];
            /** @description Of it, what is beyond the amount that was asked */
            excess: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Decimal in the asset’s native unit, exact
                 */
                amount: Decimal;
            }[];
            memo: string | null;
            order_id: string | null;
            payer: {
                email: string | null;
                name: string | null;
            } | null;
            webhook_url: string | null;
            success_url: string | null;
            failed_url: string | null;
            /**
             * Format: decimal
             * @description Percent of the amount that may be missing
             */
            tolerance: Decimal;
            sequence_id: string | null;
            /** @description Grows with every change */
            version: number;
            cancelled_at: string | null;
            marked: {
                /** @enum {string} */
                status: "settled" | "invalid";
                reason: string;
                /** Format: date-time */
                at: string;
            } | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        InvoicePayment: {
            /** @description Null while no block has held it */
            transaction_id: string | null;
            hash: string;
            asset: string;
            /**
             * Format: decimal
             * @description Decimal in the asset’s native unit, exact
             */
            amount: Decimal;
            /** @enum {string} */
            status: "seen" | "detected" | "confirmed" | "held" | "reverted" | "dropped";
            confirmations: number;
            required: number;
            /** @description False: in an asset that was not offered; it pays nothing of the invoice */
            counts: boolean;
            note: ("other_asset" | "late") | null;
            /** Format: date-time */
            seen_at: string;
            explorer_url: string | null;
        };
        InvoiceSettings: {
            display_name: string | null;
            allowed_origins: string[];
            confirmations: {
                /** Format: decimal */
                from_usd: Decimal;
                confirmations: number;
            }[];
            /** Format: decimal */
            tolerance: Decimal;
            expires_in: number;
        };
        ListBalancesResponse: {
            data: components["schemas"]["Balance"][];
            /**
             * @description Pass it as `after` to read on; null at the end of the list
             * @example BTC
             */
            next: string | null;
            /** @description Whether the list goes on */
            has_more: boolean;
        };
        ListCoinsAsideResponse: {
            data: components["schemas"]["CoinAside"][];
            /**
             * @description Pass it as `after` to read on; null at the end of the list
             * @example 1795600000000.7c9e6679-7425-40de-944b-e07fc1f90ae7
             */
            next: string | null;
            /** @description Whether the list goes on */
            has_more: boolean;
        };
        ListDeliveriesResponse: {
            data: components["schemas"]["Delivery"][];
            page: number;
            limit: number;
            total: number;
        };
        ListEventsResponse: {
            data: {
                /** @enum {string} */
                type: "transaction.created" | "transaction.updated" | "transaction.confirmed" | "transaction.failed" | "deposit.detected" | "deposit.confirmed" | "deposit.frozen" | "deposit.released" | "deposit.suspended" | "deposit.reverted" | "address.created" | "address.frozen" | "address.unfrozen" | "wallet.created" | "wallet.updated" | "gas_tank.low" | "gas_tank.empty" | "prepaid_fee.low" | "prepaid_fee.empty" | "prepaid_fee.tier_changed" | "staking.staked" | "staking.unstaked" | "staking.releasable" | "staking.released" | "auto_forwarding.created" | "auto_forwarding.deleted" | "aml.screening_overdue" | "invoice.created" | "invoice.updated" | "invoice.processing" | "invoice.paid" | "invoice.expired" | "invoice.invalid" | "exchange_account.created" | "exchange_account.updated" | "exchange_account.failing" | "exchange_account.difference" | "exchange_account.deleted" | "order.created" | "order.updated" | "exchange_transfer.created" | "exchange_transfer.updated" | "webhook.test" | "webhook.disabled";
                /** @description Time of the change, ISO 8601 */
                timestamp: string;
                data: {
                    [key: string]: unknown;
                };
                /** @description Equal to `webhook-id` in every delivery attempt, and the cursor of the event log */
                id: string;
                /** @description Id of the object that changed */
                object: string;
                /** @description Number of the event for its object: 1, 2, 3 …, without gaps. A lower number is an older event */
                version: number;
            }[];
            /** @description For the next `after`; null where there was no event yet */
            next: string | null;
            /** @description More are there already */
            has_more: boolean;
        };
        ListExchangeAccountsResponse: {
            data: components["schemas"]["ExchangeAccount"][];
            page: number;
            limit: number;
            total: number;
        };
        ListExchangeTransfersResponse: {
            data: components["schemas"]["ExchangeTransfer"][];
            page: number;
            limit: number;
            total: number;
        };
        ListExchangesResponse: {
            data: {
                exchange: string;
                name: string;
                /**
                 * @description tested: orders are held to the exchange’s own codes; generic: to what ccxt says of it; read-only: no orders, since the fate of one could not be asked
                 * @enum {string}
                 */
                support: "tested" | "generic" | "read-only";
                /** @description A key needs its passphrase */
                passphrase: boolean;
                /** @description What ccxt says of it */
                features: {
                    [key: string]: boolean;
                };
            }[];
        };
        ListForwardingRulesResponse: {
            data: components["schemas"]["ForwardingRule"][];
            page: number;
            limit: number;
            total: number;
        };
        ListForwardsResponse: {
            data: components["schemas"]["TransactionNow"][];
            page: number;
            limit: number;
            total: number;
        };
        ListGasTankEntriesResponse: {
            data: {
                id: string;
                type: string;
                /**
                 * Format: decimal
                 * @description What the tank can spend
                 */
                balance_change: Decimal;
                /**
                 * Format: decimal
                 * @description Held for transactions under way
                 */
                reserved_change: Decimal;
                /**
                 * Format: decimal
                 * @description Fuel of the tank’s at addresses
                 */
                float_change: Decimal;
                transaction_id: string | null;
                for_transaction_id: string | null;
                /** Format: date-time */
                created_at: string;
            }[];
            page: number;
            limit: number;
            total: number;
        };
        ListInvoicesResponse: {
            data: components["schemas"]["Invoice"][];
            page: number;
            limit: number;
            total: number;
        };
        ListKeysResponse: {
            network: string;
            keys: components["schemas"]["CertifiedKey"][];
        };
        ListMarketsResponse: {
            /** @description The first 10000; base and quote select */
            data: {
                market: string;
                base: string;
                quote: string;
                active: boolean;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                amount_step: Decimal;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                price_step: Decimal;
                min_amount: Decimal | null;
                max_amount: Decimal | null;
                min_cost: Decimal | null;
                maker_fee: Decimal | null;
                /** @description Share of the cost before any discount, such as 0.0026 */
                taker_fee: Decimal | null;
            }[];
        };
        ListOrdersResponse: {
            data: components["schemas"]["Order"][];
            page: number;
            limit: number;
            total: number;
        };
        ListPrepaidFeeEntriesResponse: {
            data: {
                id: string;
                /** @enum {string} */
                type: "reservation" | "charge" | "refund" | "adjustment" | "subscription";
                /** Format: decimal */
                amount: Decimal;
                /** Format: decimal */
                balance_change: Decimal;
                /**
                 * Format: decimal
                 * @description Of the account, once it was made
                 */
                balance_after: Decimal;
                transaction_id: string | null;
                order_id: string | null;
                /** Format: date-time */
                created_at: string;
            }[];
            page: number;
            limit: number;
            total: number;
        };
        ListReservesResponse: {
            data: components["schemas"]["ReservesStatement"][];
            page: number;
            limit: number;
            total: number;
        };
        ListTransactionsResponse: {
            data: components["schemas"]["TransactionNow"][];
            page: number;
            limit: number;
            total: number;
        };
        ListWebhooksResponse: {
            data: components["schemas"]["Webhook"][];
        };
        MarkInvoiceRequest: {
            /**
             * @description settled: it becomes Paid; invalid: Invalid
             * @enum {string}
             */
            status: "settled" | "invalid";
            reason: string;
        };
        Order: {
            id: string;
            exchange_account: string;
            exchange: string;
            market: string;
            /** @enum {string} */
            side: "buy" | "sell";
            /** @enum {string} */
            type: "market" | "limit";
            /** @enum {string} */
            status: "open" | "partially_filled" | "filled" | "cancelled" | "rejected" | "unknown";
            /**
             * @description NEW: not sent; SENDING; ASKING: its answer was lost, and the exchange is asked; WORKING: the exchange has it; ENDED
             * @enum {string}
             */
            sub_status: "NEW" | "SENDING" | "ASKING" | "WORKING" | "ENDED";
            /**
             * Format: decimal
             * @description Decimal, exact
             */
            amount: Decimal;
            quote_amount: Decimal | null;
            price: Decimal | null;
            /** @description Of a market order: no part of it is done at a worse price */
            protection_price: Decimal | null;
            /** @enum {string} */
            time_in_force: "GTC" | "IOC" | "FOK";
            post_only: boolean;
            max_slippage_bps: number | null;
            /**
             * Format: decimal
             * @description Decimal, exact
             */
            filled: Decimal;
            /**
             * Format: decimal
             * @description Decimal, exact
             */
            remaining: Decimal;
            average_price: Decimal | null;
            /**
             * Format: decimal
             * @description Decimal, exact
             */
            cost: Decimal;
            /** @description What the exchange took */
            fees: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                amount: Decimal;
            }[];
            /** @description Why it was rejected, or ended without being filled */
            reason: string | null;
            client_order_id: string;
            exchange_order_id: string | null;
            /**
             * Format: decimal
             * @description USD: what is reserved while it is under way, and what was charged by what was filled
             */
            platform_fee: Decimal;
            cancel_requested: boolean;
            sequence_id: string | null;
            version: number;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        OrderWithFills: {
            id: string;
            exchange_account: string;
            exchange: string;
            market: string;
            /** @enum {string} */
            side: "buy" | "sell";
            /** @enum {string} */
            type: "market" | "limit";
            /** @enum {string} */
            status: "open" | "partially_filled" | "filled" | "cancelled" | "rejected" | "unknown";
            /**
             * @description NEW: not sent; SENDING; ASKING: its answer was lost, and the exchange is asked; WORKING: the exchange has it; ENDED
             * @enum {string}
             */
            sub_status: "NEW" | "SENDING" | "ASKING" | "WORKING" | "ENDED";
            /**
             * Format: decimal
             * @description Decimal, exact
             */
            amount: Decimal;
            quote_amount: Decimal | null;
            price: Decimal | null;
            /** @description Of a market order: no part of it is done at a worse price */
            protection_price: Decimal | null;
            /** @enum {string} */
            time_in_force: "GTC" | "IOC" | "FOK";
            post_only: boolean;
            max_slippage_bps: number | null;
            /**
             * Format: decimal
             * @description Decimal, exact
             */
            filled: Decimal;
            /**
             * Format: decimal
             * @description Decimal, exact
             */
            remaining: Decimal;
            average_price: Decimal | null;
            /**
             * Format: decimal
             * @description Decimal, exact
             */
            cost: Decimal;
            /** @description What the exchange took */
            fees: {
                asset: string;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                amount: Decimal;
            }[];
            /** @description Why it was rejected, or ended without being filled */
            reason: string | null;
            client_order_id: string;
            exchange_order_id: string | null;
            /**
             * Format: decimal
             * @description USD: what is reserved while it is under way, and what was charged by what was filled
             */
            platform_fee: Decimal;
            cancel_requested: boolean;
            sequence_id: string | null;
            version: number;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** @description The first 10000, the oldest first */
            fills: {
                id: string;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                price: Decimal;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                amount: Decimal;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                cost: Decimal;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                fee: Decimal;
                fee_asset: string;
                maker: boolean | null;
                at: string;
            }[];
        };
        Price: {
            asset: string;
            /** Format: decimal */
            price_usd: Decimal;
            sources: string[];
            /** Format: date-time */
            updated_at: string;
            stale: boolean;
        };
        /** @description An error (RFC 9457). `code` is for programs, `message` for people. */
        Problem: {
            /**
             * Format: uri
             * @description The page of this code, on this server
             */
            type: string;
            /** @description What the code means, always the same */
            title: string;
            /** @description The HTTP status */
            status: number;
            /** @description The same as `message` */
            detail: string;
            /** @description The words of the HTTP status */
            error: string;
            /** @description What is wrong here, with the field and the limit */
            message: string;
            /**
             * @description Stable; never renamed or used again
             * @enum {string}
             */
            code: "INVALID_REQUEST" | "UNKNOWN_FIELD" | "INVALID_JSON" | "UNSUPPORTED_ASSET" | "ASSET_CLOSED" | "INVALID_ADDRESS" | "INVALID_AMOUNT" | "INSUFFICIENT_BALANCE" | "WALLET_EXISTS" | "WALLET_MISSING" | "WALLET_INACTIVE" | "TRANSACTION_FINAL" | "NOT_REPLACEABLE" | "REPLACEMENT_PENDING" | "RULE_EXISTS" | "RULE_FINAL" | "INVOICE_FINAL" | "INVOICE_CLOSED" | "RESOURCE_MISMATCH" | "INSUFFICIENT_STAKE" | "RELEASE_FIRST" | "UNSTAKE_LIMIT" | "NOTHING_TO_RELEASE" | "NOT_FROZEN" | "WEBHOOK_LIMIT" | "WEBHOOK_DISABLED" | "EXCHANGE_KEY_REFUSED" | "EXCHANGE_ACCOUNT_EXISTS" | "EXCHANGE_UNSUPPORTED" | "ORDER_FINAL" | "UNAUTHORIZED" | "SIGN_IN_REQUIRED" | "SIGN_IN_FAILED" | "FORBIDDEN" | "READ_ONLY" | "IP_NOT_ALLOWED" | "ROLE_REQUIRED" | "RECENT_SIGN_IN_REQUIRED" | "FOREIGN_ORIGIN" | "HTTPS_REQUIRED" | "PREPAID_FEE_EXHAUSTED" | "ADDRESS_FROZEN" | "SANCTIONED" | "NOT_FOUND" | "METHOD_NOT_ALLOWED" | "REQUEST_TIMEOUT" | "PASSKEY_UNAVAILABLE" | "LAST_OWNER" | "LAST_FACTOR" | "QUOTE_EXPIRED" | "CONVERSION_UNAVAILABLE" | "EXCHANGE_ADDRESS_CHANGED" | "EXCHANGE_ACCOUNT_BUSY" | "INVITATION_CLOSED" | "CURSOR_EXPIRED" | "PAYLOAD_TOO_LARGE" | "URI_TOO_LONG" | "UNSUPPORTED_MEDIA_TYPE" | "HEADERS_TOO_LARGE" | "RATE_LIMITED" | "INTERNAL" | "NETWORK_UNAVAILABLE" | "PROVIDER_UNAVAILABLE" | "PRICE_UNAVAILABLE" | "EXCHANGE_UNAVAILABLE" | "SIGNERS_UNAVAILABLE" | "UNAVAILABLE";
            /** @description Field, parameter, header or JWT claim that failed */
            field?: string;
            /** @description The same as in x-request-id; quote it when you ask the operator */
            request_id: string;
            /** @description Of the object that is there already */
            id?: string;
            /** @description Of the wallet that is there already */
            wallet_id?: string;
            /** @description The one of several that failed */
            asset?: string;
            /** @description Of the invoice */
            inv_status?: string;
            /** @description Where the exchange takes the asset now */
            address?: string;
            /** @description Its tag */
            address_tag?: string | null;
            /**
             * Format: date-time
             * @description Of a sign-in to the control panel that is locked
             */
            locked_until?: string;
            /** @description Where it took it before */
            previous?: {
                /** @description The address */
                address: string;
                /** @description Its tag */
                tag: string | null;
            } | null;
        };
        QuoteConversionRequest: {
            /**
             * @description A coin at the exchange (BTC, USD), or an asset of ours, whose coin it is
             * @example BTC
             */
            from_asset: string;
            /**
             * @description An `asset_name` of the assets list; case-sensitive
             * @example USDT
             */
            to_asset: string;
            /** @description Of from_asset, exact */
            amount: Decimal | string;
            /** @description Ids of exchange accounts; all of the sub-account’s where it is absent */
            accounts?: string[] | null;
        };
        ReadIndexResponse: {
            name: string;
            description: string;
            links: {
                [key: string]: string;
            };
            authentication: string;
            documentation: string[];
        };
        ReadLivenessResponse: {
            /** @constant */
            status: "ok";
        };
        ReadNetworkFeeRatesResponse: {
            asset: string;
            fee_rate_unit: string;
            /** Format: decimal */
            low: Decimal;
            /** Format: decimal */
            medium: Decimal;
            /** Format: decimal */
            high: Decimal;
            /**
             * Format: date-time
             * @description When the rates were read from the node; where it has no estimate now, when it last had one
             */
            updated_at: string;
            /** @description Only where the node has no estimate now: which rates these are instead */
            warning?: string;
        };
        ReadOpenApiResponse: {
            /** @constant */
            openapi: "3.1.0";
        } & {
            [key: string]: unknown;
        };
        ReadOrderBookResponse: {
            market: string;
            bids: {
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                price: Decimal;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                amount: Decimal;
            }[];
            asks: {
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                price: Decimal;
                /**
                 * Format: decimal
                 * @description Decimal, exact
                 */
                amount: Decimal;
            }[];
            at: string;
        };
        ReadPrepaidFeeRequest: Record<string, never>;
        ReadPrepaidFeeResponse: {
            /** Format: decimal */
            balance: Decimal;
            /** Format: decimal */
            reserved: Decimal;
            /** @constant */
            currency: "USD";
            /** @enum {string} */
            status: "ok" | "low" | "empty";
            tier: string;
            fees: {
                basis_points: number;
                /** Format: double */
                percent: number;
                /** Format: decimal */
                minimum: Decimal;
                /** Format: decimal */
                monthly: Decimal;
            };
            /** Format: decimal */
            volume_30d: Decimal;
        };
        ReadReadinessResponse: {
            /** @enum {string} */
            status: "ok" | "unavailable";
            checks: {
                [key: string]: string;
            };
        };
        ReadStakingResponse: {
            staked: {
                /** Format: decimal */
                ENERGY: Decimal;
                /** Format: decimal */
                BANDWIDTH: Decimal;
            };
            cooling: {
                /** Format: decimal */
                amount: Decimal;
                /**
                 * Format: date-time
                 * @description By the time of the chain; an estimate until the unstake is confirmed
                 */
                release_at: string;
                confirmed: boolean;
            }[];
            /** Format: decimal */
            releasable: Decimal;
        };
        ReadTickerResponse: {
            market: string;
            bid: Decimal | null;
            ask: Decimal | null;
            last: Decimal | null;
            at: string;
        };
        ReadWebhookKeysResponse: {
            keys: {
                kty: string;
                n: string;
                e: string;
                kid: string;
                /** @constant */
                alg: "RS512";
                /** @constant */
                use: "sig";
            }[];
        };
        RefundInvoiceRequest: {
            /**
             * @description An `asset_name` of the assets list; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            /** @description Decimal in the asset’s native unit, exact; a number or a text */
            amount: Decimal | string;
            destination_address: string;
            /**
             * @description EXCHANGE: destination_id names an exchange account, and destination_address is where that exchange takes the asset
             * @enum {string}
             */
            destination_type: "EXTERNAL" | "EXCHANGE";
            /** @constant */
            source_type: "INTERNAL";
            /** @description Idempotency key, unique within the wallet */
            sequence_id?: string | null;
            /** @description Your own note; never put on chain. Refused where it has the form of a tag and the asset takes one that is missing */
            memo?: string | null;
            address_tag?: string | null;
            /** @description Id of an exchange account, with destination_type EXCHANGE */
            destination_id?: string | null;
            /** @description The address of an exchange once more, where it is another than last time */
            confirm_address?: string | null;
            /** @description In the unit of the chain family; the signer nodes hold to it */
            fee_rate?: (Decimal | string) | null;
            fee_level?: ("low" | "medium" | "high") | null;
            /** @description Accepted from older clients; means nothing */
            type?: "Withdraw" | null;
            /** @description Accepted from older clients; means nothing */
            ts?: (number | string) | null;
        };
        ReleaseUnstakedRequest: {
            /** @constant */
            asset: "TRX";
            address: string;
            /** @description Idempotency key, unique within the TRX wallet: transfers share it */
            sequence_id?: string | null;
        };
        Replacement: {
            /** @enum {string} */
            kind: "speed-up" | "cancel" | "automatic";
            /** @enum {string} */
            state: "pending" | "done" | "refused";
            /** Format: decimal */
            fee_rate: Decimal | null;
            fee_level: string | null;
            reason: string | null;
            /** Format: date-time */
            created_at: string;
        };
        ReservesProof: {
            snapshot: string;
            workspace: string;
            sub_account: string;
            /** @description 32 bytes, lower-case hex; yours alone */
            secret: string;
            /** @description One for each wallet that there was */
            leaves: {
                asset: string;
                /** @description Integer in the smallest unit, decimal */
                balance: string;
                /** @description 32 bytes, lower-case hex */
                nonce: string;
                /** @description From the leaf up to the top */
                siblings: {
                    /** @enum {string} */
                    side: "left" | "right";
                    /** @description 32 bytes, lower-case hex */
                    hash: string;
                    /** @description Integer in the smallest unit, decimal */
                    sum: string;
                }[];
            }[];
        };
        ReservesStatement: {
            id: string;
            /** Format: date-time */
            created_at: string;
            /** @description SHA-256 of `statement`, lower-case hex */
            hash: string;
            /** @description Canonical JSON (RFC 8785), the exact bytes that were signed: what is held and owed of each asset, and its root */
            statement: string;
            signatures: {
                node: number;
                /** @description Ed25519, lower-case hex, over custody/reserves/v1, a line feed, and {"statement":"HASH"} */
                signature: string;
            }[];
        };
        RotateWebhookSecretRequest: {
            /** @description Seconds for which the secret of before signs as well: 86400 where it is absent; 0: it is void at once */
            overlap_s?: number | null;
        };
        SaveAmlSettingsRequest: {
            /**
             * @description In any case
             * @enum {string}
             */
            provider: "CHAINALYSIS" | "ELLIPTIC" | "TRM";
            /** @description API key of the provider; Elliptic: key:secret */
            aml_token: string;
            /**
             * @description Comma-separated, each level that is held: SEVERE, HIGH, MEDIUM, LOW
             * @example SEVERE, HIGH
             */
            aml_risk_levels: string;
            aml_deposit: boolean;
            aml_withdrawal: boolean;
        };
        SaveInvoiceSettingsRequest: {
            /** @description What payers read; the workspace’s name where it is left out */
            display_name?: string | null;
            /** @description Origins of pages that may show the checkout in a frame */
            allowed_origins?: string[] | null;
            /** @description By the worth of an invoice, from_usd rising; never fewer than the network’s depth */
            confirmations?: {
                /** @description USD, six decimals at most */
                from_usd: Decimal | string;
                /** @description Blocks that a payment needs beside being credited */
                confirmations: number;
            }[] | null;
            tolerance?: (Decimal | string) | null;
            expires_in?: number | null;
        };
        SpeedUpTransactionRequest: {
            /** @description In the unit of the chain family; the new limit */
            fee_rate?: (Decimal | string) | null;
            /** @description high where neither is given */
            fee_level?: ("low" | "medium" | "high") | null;
        };
        StakeRequest: {
            /** @constant */
            asset: "TRX";
            /** @description Tron address that has the resource; the wallet’s own or another’s */
            address: string;
            /** @enum {string} */
            resource: "ENERGY" | "BANDWIDTH";
            /** @description Decimal in the asset’s native unit, exact; a number or a text */
            amount: Decimal | string;
            /** @description Idempotency key, unique within the TRX wallet: transfers share it */
            sequence_id?: string | null;
        };
        StakingAnswer: {
            id: string;
            /** @enum {string} */
            status: "pending" | "confirmed" | "failed";
            hash: string | null;
        };
        TestExchangeAccountRequest: Record<string, never>;
        Transaction: {
            id: string;
            type: string;
            hash: string | null;
            asset: string;
            /** Format: decimal */
            amount: Decimal;
            /**
             * Format: decimal
             * @description Network fee: the estimate until confirmed, then what was paid; 0 of one that failed before it reached a chain
             */
            fee: Decimal;
            fee_asset: string;
            source_type: string;
            source_id: string | null;
            destination_type: string;
            destination_id: string | null;
            address_tag: string | null;
            /** @enum {string} */
            status: "pending" | "confirmed" | "failed";
            sub_status: string;
            confirmations: number;
            /** @description The note given at creation; empty where none was given, as with deposits */
            memo: string;
            sequence_id: string | null;
            failure_reason: string | null;
            /**
             * Format: decimal
             * @description Value at the price of the moment at which it was created, or a deposit was first seen in a block; it never changes. null where there was no current price
             */
            amount_in_usd: Decimal | null;
            /**
             * Format: decimal
             * @description In USD; of one that failed, what was charged all the same. null: none is taken for it
             */
            platform_fee: Decimal | null;
            /** @description Of a transfer that failed before it was paid: the signer nodes will sign nothing for it any more */
            voids: components["schemas"]["Void"][];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** Format: date-time */
            confirmed_at: string | null;
        };
        TransactionNow: {
            id: string;
            type: string;
            hash: string | null;
            asset: string;
            /** Format: decimal */
            amount: Decimal;
            /**
             * Format: decimal
             * @description Network fee: the estimate until confirmed, then what was paid; 0 of one that failed before it reached a chain
             */
            fee: Decimal;
            fee_asset: string;
            source_type: string;
            source_id: string | null;
            destination_type: string;
            destination_id: string | null;
            address_tag: string | null;
            /** @enum {string} */
            status: "pending" | "confirmed" | "failed";
            sub_status: string;
            confirmations: number;
            /** @description The note given at creation; empty where none was given, as with deposits */
            memo: string;
            sequence_id: string | null;
            failure_reason: string | null;
            /**
             * Format: decimal
             * @description Value at the price of the moment at which it was created, or a deposit was first seen in a block; it never changes. null where there was no current price
             */
            amount_in_usd: Decimal | null;
            /**
             * Format: decimal
             * @description In USD; of one that failed, what was charged all the same. null: none is taken for it
             */
            platform_fee: Decimal | null;
            /** @description Of a transfer that failed before it was paid: the signer nodes will sign nothing for it any more */
            voids: components["schemas"]["Void"][];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** Format: date-time */
            confirmed_at: string | null;
            /** @description What a pending transfer waits for; null where it is being processed */
            waiting: components["schemas"]["Waiting"] | null;
        };
        TransactionWithReplacements: {
            id: string;
            type: string;
            hash: string | null;
            asset: string;
            /** Format: decimal */
            amount: Decimal;
            /**
             * Format: decimal
             * @description Network fee: the estimate until confirmed, then what was paid; 0 of one that failed before it reached a chain
             */
            fee: Decimal;
            fee_asset: string;
            source_type: string;
            source_id: string | null;
            destination_type: string;
            destination_id: string | null;
            address_tag: string | null;
            /** @enum {string} */
            status: "pending" | "confirmed" | "failed";
            sub_status: string;
            confirmations: number;
            /** @description The note given at creation; empty where none was given, as with deposits */
            memo: string;
            sequence_id: string | null;
            failure_reason: string | null;
            /**
             * Format: decimal
             * @description Value at the price of the moment at which it was created, or a deposit was first seen in a block; it never changes. null where there was no current price
             */
            amount_in_usd: Decimal | null;
            /**
             * Format: decimal
             * @description In USD; of one that failed, what was charged all the same. null: none is taken for it
             */
            platform_fee: Decimal | null;
            /** @description Of a transfer that failed before it was paid: the signer nodes will sign nothing for it any more */
            voids: components["schemas"]["Void"][];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** Format: date-time */
            confirmed_at: string | null;
            /** @description What a pending transfer waits for; null where it is being processed */
            waiting: components["schemas"]["Waiting"] | null;
            replacements?: components["schemas"]["Replacement"][];
        };
        UnfreezeAddressRequest: {
            /**
             * @description An `asset_name` of the assets list; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            address: string;
            address_tag?: string | null;
        };
        UnfreezeAddressResponse: {
            asset: string;
            address: string;
            address_tag: string | null;
            /** Format: date-time */
            unfrozen_at: string;
        };
        UnstakeRequest: {
            /** @constant */
            asset: "TRX";
            /** @description Tron address that has the resource; the wallet’s own or another’s */
            address: string;
            /** @enum {string} */
            resource: "ENERGY" | "BANDWIDTH";
            /** @description Decimal in the asset’s native unit, exact; a number or a text */
            amount: Decimal | string;
            /** @description Idempotency key, unique within the TRX wallet: transfers share it */
            sequence_id?: string | null;
        };
        ValidateAddressRequest: {
            /**
             * @description An `asset_name` of the assets list; case-sensitive
             * @example BTC
             * @example USDT_ETH
             */
            asset: string;
            address: string;
            address_tag?: string | null;
        };
        ValidateAddressResponse: {
            valid: boolean;
            reason?: string;
            /** @description The address as transfers to it are listed (`destination_id`), where the request spells it otherwise */
            address?: string;
            /** @description Tag that a payment would carry: the one given, or the one inside an X-address; null: none */
            address_tag?: string | null;
            /** @description false: the address contains its tag, or states that it has none (X-address, M…), and takes no other */
            takes_tag?: boolean;
            /** @description true: the account refuses payments without a tag; null: its chain did not answer within two seconds */
            requires_tag?: boolean | null;
        };
        Void: {
            record: components["schemas"]["VoidRecord"];
            /** @description Ed25519, lower-case hex, over custody/void/v2, a line feed, and the JSON of the record */
            signature: string;
        };
        VoidRecord: {
            node: number;
            intent: string;
            transaction_id: string;
            /** @description The standing rule whose forward was voided; null: a request of the caller */
            rule: string | null;
            height: number;
            voided_at: number;
            /** @description Hashes of what the node knows to be signed for it, without fuel and loans */
            signed: string[];
            /** @description Transactions that entered signing, outcome unknown to the node */
            unfinished: number;
        };
        Waiting: {
            /** @description Today NETWORK_FEES, GAS_TANK, COINS, EARLIER_TRANSFER, SCREENING, AML_HELD, SIGNER_NODES, ENDPOINT, CHAIN_REFUSAL, SWEEP_COST, INTERNAL; further codes may be added */
            code: string;
            /** @description A sentence for people; may change */
            reason: string;
            /** @description When it began to wait for this code */
            since: string;
        };
        Wallet: {
            id: string;
            asset: string;
            /** @enum {string} */
            status: "active" | "inactive";
            /** @description The first address of the wallet */
            omnibus_address: string;
            /** @description [sub-account, chain, index], not hardened, below the key of GET /dac/v1/keys */
            path: number[];
            /** Format: date-time */
            created_at: string;
        };
        WalletBalance: {
            id: string;
            asset: string;
            /** @enum {string} */
            status: "active" | "inactive";
            /** @description The first address of the wallet */
            omnibus_address: string;
            /** @description [sub-account, chain, index], not hardened, below the key of GET /dac/v1/keys */
            path: number[];
            /** Format: date-time */
            created_at: string;
            /** Format: decimal */
            balance: Decimal;
            /** Format: decimal */
            omnibus_balance: Decimal;
            /** @description Why no new address of the wallet is made; null: new addresses are made. The balance can be sent in both cases */
            closed: {
                /** @enum {string} */
                status: "deprecated" | "retired";
                since: string;
                reason: string;
            } | null;
        };
        Webhook: {
            id: string;
            url: string;
            events: string[];
            description: string | null;
            /** @enum {string} */
            format: "standard" | "classic";
            disabled: boolean;
            disabled_reason: string | null;
            /** @description Tries in a row that failed; at 50 it is disabled */
            failures: number;
            /** @description Until then the secret of before the rotation signs as well */
            previous_secret_until: string | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        WebhookWithSecret: {
            id: string;
            url: string;
            events: string[];
            description: string | null;
            /** @enum {string} */
            format: "standard" | "classic";
            disabled: boolean;
            disabled_reason: string | null;
            /** @description Tries in a row that failed; at 50 it is disabled */
            failures: number;
            /** @description Until then the secret of before the rotation signs as well */
            previous_secret_until: string | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** @description `whsec_` and 32 bytes in base64. Shown here and never again */
            secret: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Address = components['schemas']['Address'];
export type AddressPage = components['schemas']['AddressPage'];
export type AmlSettings = components['schemas']['AmlSettings'];
export type Asset = components['schemas']['Asset'];
export type Balance = components['schemas']['Balance'];
export type CancelInvoiceRequest = components['schemas']['CancelInvoiceRequest'];
export type CancelOrderRequest = components['schemas']['CancelOrderRequest'];
export type CancelTransactionRequest = components['schemas']['CancelTransactionRequest'];
export type CertifiedKey = components['schemas']['CertifiedKey'];
export type ChangeExchangeAccountRequest = components['schemas']['ChangeExchangeAccountRequest'];
export type ChangeWebhookRequest = components['schemas']['ChangeWebhookRequest'];
export type Checkout = components['schemas']['Checkout'];
export type ChooseCheckoutAssetRequest = components['schemas']['ChooseCheckoutAssetRequest'];
export type CoinAside = components['schemas']['CoinAside'];
export type Conversion = components['schemas']['Conversion'];
export type CreateAddressRequest = components['schemas']['CreateAddressRequest'];
export type CreateConversionRequest = components['schemas']['CreateConversionRequest'];
export type CreateExchangeAccountRequest = components['schemas']['CreateExchangeAccountRequest'];
export type CreateExchangeWithdrawalRequest = components['schemas']['CreateExchangeWithdrawalRequest'];
export type CreateForwardingRuleRequest = components['schemas']['CreateForwardingRuleRequest'];
export type CreateInvoiceRequest = components['schemas']['CreateInvoiceRequest'];
export type CreateOrderRequest = components['schemas']['CreateOrderRequest'];
export type CreateTransactionRequest = components['schemas']['CreateTransactionRequest'];
export type CreateWalletAliasRequest = components['schemas']['CreateWalletAliasRequest'];
export type CreateWalletRequest = components['schemas']['CreateWalletRequest'];
export type CreateWebhookRequest = components['schemas']['CreateWebhookRequest'];
export type DeleteExchangeAccountResponse = components['schemas']['DeleteExchangeAccountResponse'];
export type DeleteForwardingRuleRequest = components['schemas']['DeleteForwardingRuleRequest'];
export type DeleteWebhookResponse = components['schemas']['DeleteWebhookResponse'];
export type Delivery = components['schemas']['Delivery'];
export type EstimateFeeRequest = components['schemas']['EstimateFeeRequest'];
export type EstimateFeeResponse = components['schemas']['EstimateFeeResponse'];
export type ExchangeAccount = components['schemas']['ExchangeAccount'];
export type ExchangeAccountTest = components['schemas']['ExchangeAccountTest'];
export type ExchangeAccountWithBalances = components['schemas']['ExchangeAccountWithBalances'];
export type ExchangeBalance = components['schemas']['ExchangeBalance'];
export type ExchangeDepositAddress = components['schemas']['ExchangeDepositAddress'];
export type ExchangeTransfer = components['schemas']['ExchangeTransfer'];
export type ForwardingRule = components['schemas']['ForwardingRule'];
export type FrozenAddress = components['schemas']['FrozenAddress'];
export type GasTank = components['schemas']['GasTank'];
export type Invoice = components['schemas']['Invoice'];
export type InvoicePayment = components['schemas']['InvoicePayment'];
export type InvoiceSettings = components['schemas']['InvoiceSettings'];
export type ListBalancesResponse = components['schemas']['ListBalancesResponse'];
export type ListCoinsAsideResponse = components['schemas']['ListCoinsAsideResponse'];
export type ListDeliveriesResponse = components['schemas']['ListDeliveriesResponse'];
export type ListEventsResponse = components['schemas']['ListEventsResponse'];
export type ListExchangeAccountsResponse = components['schemas']['ListExchangeAccountsResponse'];
export type ListExchangeTransfersResponse = components['schemas']['ListExchangeTransfersResponse'];
export type ListExchangesResponse = components['schemas']['ListExchangesResponse'];
export type ListForwardingRulesResponse = components['schemas']['ListForwardingRulesResponse'];
export type ListForwardsResponse = components['schemas']['ListForwardsResponse'];
export type ListGasTankEntriesResponse = components['schemas']['ListGasTankEntriesResponse'];
export type ListInvoicesResponse = components['schemas']['ListInvoicesResponse'];
export type ListKeysResponse = components['schemas']['ListKeysResponse'];
export type ListMarketsResponse = components['schemas']['ListMarketsResponse'];
export type ListOrdersResponse = components['schemas']['ListOrdersResponse'];
export type ListPrepaidFeeEntriesResponse = components['schemas']['ListPrepaidFeeEntriesResponse'];
export type ListReservesResponse = components['schemas']['ListReservesResponse'];
export type ListTransactionsResponse = components['schemas']['ListTransactionsResponse'];
export type ListWebhooksResponse = components['schemas']['ListWebhooksResponse'];
export type MarkInvoiceRequest = components['schemas']['MarkInvoiceRequest'];
export type Order = components['schemas']['Order'];
export type OrderWithFills = components['schemas']['OrderWithFills'];
export type Price = components['schemas']['Price'];
export type Problem = components['schemas']['Problem'];
export type QuoteConversionRequest = components['schemas']['QuoteConversionRequest'];
export type ReadIndexResponse = components['schemas']['ReadIndexResponse'];
export type ReadLivenessResponse = components['schemas']['ReadLivenessResponse'];
export type ReadNetworkFeeRatesResponse = components['schemas']['ReadNetworkFeeRatesResponse'];
export type ReadOpenApiResponse = components['schemas']['ReadOpenApiResponse'];
export type ReadOrderBookResponse = components['schemas']['ReadOrderBookResponse'];
export type ReadPrepaidFeeRequest = components['schemas']['ReadPrepaidFeeRequest'];
export type ReadPrepaidFeeResponse = components['schemas']['ReadPrepaidFeeResponse'];
export type ReadReadinessResponse = components['schemas']['ReadReadinessResponse'];
export type ReadStakingResponse = components['schemas']['ReadStakingResponse'];
export type ReadTickerResponse = components['schemas']['ReadTickerResponse'];
export type ReadWebhookKeysResponse = components['schemas']['ReadWebhookKeysResponse'];
export type RefundInvoiceRequest = components['schemas']['RefundInvoiceRequest'];
export type ReleaseUnstakedRequest = components['schemas']['ReleaseUnstakedRequest'];
export type Replacement = components['schemas']['Replacement'];
export type ReservesProof = components['schemas']['ReservesProof'];
export type ReservesStatement = components['schemas']['ReservesStatement'];
export type RotateWebhookSecretRequest = components['schemas']['RotateWebhookSecretRequest'];
export type SaveAmlSettingsRequest = components['schemas']['SaveAmlSettingsRequest'];
export type SaveInvoiceSettingsRequest = components['schemas']['SaveInvoiceSettingsRequest'];
export type SpeedUpTransactionRequest = components['schemas']['SpeedUpTransactionRequest'];
export type StakeRequest = components['schemas']['StakeRequest'];
export type StakingAnswer = components['schemas']['StakingAnswer'];
export type TestExchangeAccountRequest = components['schemas']['TestExchangeAccountRequest'];
export type Transaction = components['schemas']['Transaction'];
export type TransactionNow = components['schemas']['TransactionNow'];
export type TransactionWithReplacements = components['schemas']['TransactionWithReplacements'];
export type UnfreezeAddressRequest = components['schemas']['UnfreezeAddressRequest'];
export type UnfreezeAddressResponse = components['schemas']['UnfreezeAddressResponse'];
export type UnstakeRequest = components['schemas']['UnstakeRequest'];
export type ValidateAddressRequest = components['schemas']['ValidateAddressRequest'];
export type ValidateAddressResponse = components['schemas']['ValidateAddressResponse'];
export type Void = components['schemas']['Void'];
export type VoidRecord = components['schemas']['VoidRecord'];
export type Waiting = components['schemas']['Waiting'];
export type Wallet = components['schemas']['Wallet'];
export type WalletBalance = components['schemas']['WalletBalance'];
export type Webhook = components['schemas']['Webhook'];
export type WebhookWithSecret = components['schemas']['WebhookWithSecret'];
export interface operations {
    listAssets: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Asset"][];
                };
            };
        };
    };
    listSupportedAssets: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Asset"][];
                };
            };
        };
    };
    createWallet: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateWalletRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Wallet"];
                };
            };
        };
    };
    createWalletAlias: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateWalletAliasRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Wallet"];
                };
            };
        };
    };
    listWallets: {
        parameters: {
            query: {
                /** @description An `asset_name` of the assets list; case-sensitive */
                asset: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WalletBalance"][];
                };
            };
        };
    };
    listBalances: {
        parameters: {
            query?: {
                /** @description `next` of an earlier answer: the wallets that come after it */
                after?: string;
                /** @description Wallets of an answer; 100 where it is absent */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListBalancesResponse"];
                };
            };
        };
    };
    listCoinsAside: {
        parameters: {
            query?: {
                /** @description An `asset_name` of the assets list; case-sensitive */
                asset?: string;
                /** @description Code of a network */
                network?: string;
                /** @description `next` of an earlier answer: the coins that come after it */
                after?: string;
                /** @description Coins of an answer; 100 where it is absent */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListCoinsAsideResponse"];
                };
            };
        };
    };
    createAddress: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateAddressRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Address"];
                };
            };
        };
    };
    listAddresses: {
        parameters: {
            query: {
                /** @description An `asset_name` of the assets list; case-sensitive */
                asset: string;
                /** @description `next` of an earlier answer: the addresses that come after it */
                after?: string;
                /** @description Addresses of a page; 100 where only `after` is given */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Address"][] | components["schemas"]["AddressPage"];
                };
            };
        };
    };
    listKeys: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListKeysResponse"];
                };
            };
        };
    };
    validateAddress: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ValidateAddressRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ValidateAddressResponse"];
                };
            };
        };
    };
    createTransaction: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateTransactionRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Transaction"];
                };
            };
        };
    };
    readTransaction: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransactionWithReplacements"];
                };
            };
        };
    };
    listTransactions: {
        parameters: {
            query?: {
                /** @description An `asset_name` of the assets list; case-sensitive */
                asset?: string;
                /** @description Created before this Unix time in seconds */
                before?: number;
                /** @description Created after this Unix time in seconds */
                after?: number;
                /** @description Only those with this source type */
                source_type?: "INTERNAL" | "EXTERNAL" | "GAS_TANK" | "OMNIBUS" | "STAKING";
                /** @description Source address or label */
                source_id?: string;
                /** @description Only those with this dest type */
                dest_type?: "INTERNAL" | "EXTERNAL" | "GAS_TANK" | "OMNIBUS" | "STAKING";
                /** @description Destination address or label */
                dest_id?: string;
                /** @description Source or destination address, in any letter case. Labels are found by source_id and dest_id */
                address?: string;
                /** @description Only those with this status */
                status?: "pending" | "confirmed" | "failed";
                /** @description Platform id or hash on the chain */
                id?: string;
                /** @description The idempotency key given at creation, exactly */
                sequence_id?: string;
                /** @description The whole memo, exactly */
                memo?: string;
                /** @description Beginning of the memo; the letters a to z in any case. More than 1000 such memos in the sub-account are 400 */
                memo_begins?: string;
                /** @description Fuel, Sweep and what else the platform does by itself is shown only where it is asked for */
                type?: "Withdraw" | "Deposit" | "Sweep" | "Fuel" | "GasTankDeposit" | "GasTankDrain" | "Stake" | "Unstake" | "Release" | "EnergyLoan" | "EnergyReturn";
                /** @description Page number; 1 where it is absent */
                page?: number;
                /** @description Records on a page; 50 where it is absent */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListTransactionsResponse"];
                };
            };
        };
    };
    speedUpTransaction: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SpeedUpTransactionRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransactionNow"];
                };
            };
        };
    };
    cancelTransaction: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelTransactionRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransactionNow"];
                };
            };
        };
    };
    listGasTanks: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GasTank"][];
                };
            };
        };
    };
    listGasTankEntries: {
        parameters: {
            query?: {
                /** @description Page number; 1 where it is absent */
                page?: number;
                /** @description Records on a page; 50 where it is absent */
                limit?: number;
            };
            path: {
                /** @description Of the object */
                network: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListGasTankEntriesResponse"];
                };
            };
        };
    };
    readNetworkFeeRates: {
        parameters: {
            path: {
                /** @description Of the object */
                asset: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadNetworkFeeRatesResponse"];
                };
            };
        };
    };
    estimateFee: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EstimateFeeRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EstimateFeeResponse"];
                };
            };
        };
    };
    readPrepaidFee: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReadPrepaidFeeRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadPrepaidFeeResponse"];
                };
            };
        };
    };
    listPrepaidFeeEntries: {
        parameters: {
            query?: {
                /** @description Page number; 1 where it is absent */
                page?: number;
                /** @description Records on a page; 50 where it is absent */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListPrepaidFeeEntriesResponse"];
                };
            };
        };
    };
    listPrices: {
        parameters: {
            query?: {
                /** @description Asset names, comma-separated; every asset that has a price where it is absent */
                assets?: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Price"][];
                };
            };
        };
    };
    readAmlSettings: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AmlSettings"];
                };
            };
        };
    };
    saveAmlSettings: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SaveAmlSettingsRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AmlSettings"];
                };
            };
        };
    };
    unfreezeAddress: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["UnfreezeAddressRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UnfreezeAddressResponse"];
                };
            };
        };
    };
    listFrozenAddresses: {
        parameters: {
            query?: {
                /** @description An `asset_name` of the assets list; case-sensitive */
                asset?: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FrozenAddress"][];
                };
            };
        };
    };
    listForwardingRules: {
        parameters: {
            query?: {
                /** @description An `asset_name` of the assets list; case-sensitive */
                asset?: string;
                /** @description Only those with this status */
                status?: "pending" | "active" | "paused" | "expired" | "deleting" | "deleted";
                /** @description Page number; 1 where it is absent */
                page?: number;
                /** @description Records on a page; 50 where it is absent */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListForwardingRulesResponse"];
                };
            };
        };
    };
    createForwardingRule: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateForwardingRuleRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForwardingRule"];
                };
            };
        };
    };
    readForwardingRule: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForwardingRule"];
                };
            };
        };
    };
    deleteForwardingRule: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["DeleteForwardingRuleRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForwardingRule"];
                };
            };
        };
    };
    pauseForwardingRule: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForwardingRule"];
                };
            };
        };
    };
    resumeForwardingRule: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForwardingRule"];
                };
            };
        };
    };
    listForwards: {
        parameters: {
            query?: {
                /** @description Page number; 1 where it is absent */
                page?: number;
                /** @description Records on a page; 50 where it is absent */
                limit?: number;
            };
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListForwardsResponse"];
                };
            };
        };
    };
    listInvoices: {
        parameters: {
            query?: {
                /** @description Only those with this status */
                status?: "Pending" | "Processing" | "Paid" | "Expired" | "Invalid";
                /** @description Only those with this exception */
                exception?: "late" | "partial" | "over";
                /** @description Only those with this order id */
                order_id?: string;
                /** @description That may be paid in this asset */
                asset?: string;
                /** @description Created at this Unix time in seconds, or later */
                from?: number;
                /** @description Created before this Unix time in seconds */
                to?: number;
                /** @description Page number; 1 where it is absent */
                page?: number;
                /** @description Records on a page; 50 where it is absent */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListInvoicesResponse"];
                };
            };
        };
    };
    createInvoice: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateInvoiceRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invoice"];
                };
            };
        };
    };
    readInvoice: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invoice"];
                };
            };
        };
    };
    cancelInvoice: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelInvoiceRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invoice"];
                };
            };
        };
    };
    markInvoice: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["MarkInvoiceRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invoice"];
                };
            };
        };
    };
    refundInvoice: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RefundInvoiceRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Transaction"];
                };
            };
        };
    };
    readInvoiceSettings: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvoiceSettings"];
                };
            };
        };
    };
    saveInvoiceSettings: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SaveInvoiceSettingsRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvoiceSettings"];
                };
            };
        };
    };
    readCheckout: {
        parameters: {
            path: {
                /** @description Of the object */
                inv_id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Checkout"];
                };
            };
        };
    };
    chooseCheckoutAsset: {
        parameters: {
            path: {
                /** @description Of the object */
                inv_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ChooseCheckoutAssetRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Checkout"];
                };
            };
        };
    };
    streamCheckout: {
        parameters: {
            path: {
                /** @description Of the object */
                inv_id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description A stream, of which this is the data of each event */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["Checkout"];
                };
            };
        };
    };
    listExchanges: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListExchangesResponse"];
                };
            };
        };
    };
    listExchangeAccounts: {
        parameters: {
            query?: {
                /** @description Only those with this exchange */
                exchange?: string;
                /** @description Page number; 1 where it is absent */
                page?: number;
                /** @description Records on a page; 50 where it is absent */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListExchangeAccountsResponse"];
                };
            };
        };
    };
    createExchangeAccount: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateExchangeAccountRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeAccount"];
                };
            };
        };
    };
    readExchangeAccount: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeAccountWithBalances"];
                };
            };
        };
    };
    deleteExchangeAccount: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeleteExchangeAccountResponse"];
                };
            };
        };
    };
    changeExchangeAccount: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ChangeExchangeAccountRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeAccount"];
                };
            };
        };
    };
    testExchangeAccount: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["TestExchangeAccountRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeAccountTest"];
                };
            };
        };
    };
    listMarkets: {
        parameters: {
            query: {
                /** @description Only those with this exchange */
                exchange: string;
                /** @description Only those with this base */
                base?: string;
                /** @description Only those with this quote */
                quote?: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListMarketsResponse"];
                };
            };
        };
    };
    readTicker: {
        parameters: {
            query: {
                /** @description Only those with this exchange */
                exchange: string;
                /** @description Such as BTC/USD */
                market: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadTickerResponse"];
                };
            };
        };
    };
    readOrderBook: {
        parameters: {
            query: {
                /** @description Only those with this exchange */
                exchange: string;
                /** @description Such as BTC/USD */
                market: string;
                /** @description Levels of each side, as far as the exchange tells them; 20 where it is absent */
                depth?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadOrderBookResponse"];
                };
            };
        };
    };
    listOrders: {
        parameters: {
            query?: {
                /** @description Only those with this exchange account */
                exchange_account?: string;
                /** @description Only those with this exchange */
                exchange?: string;
                /** @description Only those with this market */
                market?: string;
                /** @description Only those with this side */
                side?: "buy" | "sell";
                /** @description Only those with this type */
                type?: "market" | "limit";
                /** @description Only those with this status */
                status?: "open" | "partially_filled" | "filled" | "cancelled" | "rejected" | "unknown";
                /** @description Platform id, client order id, or the exchange’s id */
                id?: string;
                /** @description Only those with this sequence id */
                sequence_id?: string;
                /** @description Created before this Unix time in seconds */
                before?: number;
                /** @description Created after this Unix time in seconds */
                after?: number;
                /** @description Page number; 1 where it is absent */
                page?: number;
                /** @description Records on a page; 50 where it is absent */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListOrdersResponse"];
                };
            };
        };
    };
    createOrder: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateOrderRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Order"];
                };
            };
        };
    };
    readOrder: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OrderWithFills"];
                };
            };
        };
    };
    cancelOrder: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelOrderRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Order"];
                };
            };
        };
    };
    quoteConversion: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["QuoteConversionRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversion"];
                };
            };
        };
    };
    createConversion: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateConversionRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversion"];
                };
            };
        };
    };
    readConversion: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversion"];
                };
            };
        };
    };
    readExchangeDepositAddress: {
        parameters: {
            query: {
                /** @description An `asset_name` of the assets list; case-sensitive */
                asset: string;
            };
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeDepositAddress"];
                };
            };
        };
    };
    createExchangeWithdrawal: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateExchangeWithdrawalRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeTransfer"];
                };
            };
        };
    };
    listExchangeTransfers: {
        parameters: {
            query?: {
                /** @description Only those with this exchange account */
                exchange_account?: string;
                /** @description Only those with this asset */
                asset?: string;
                /** @description Only those with this direction */
                direction?: "to_exchange" | "from_exchange";
                /** @description Only those with this status */
                status?: "pending" | "completed" | "failed" | "unknown";
                /** @description Only those with this transaction id */
                transaction_id?: string;
                /** @description Page number; 1 where it is absent */
                page?: number;
                /** @description Records on a page; 50 where it is absent */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListExchangeTransfersResponse"];
                };
            };
        };
    };
    readExchangeTransfer: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExchangeTransfer"];
                };
            };
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description The `id` of an event: those that came after it */
                after?: string;
                /** @description Names of events, `group.*` or `*`, separated by commas, in any case */
                type?: string;
                /** @description Events of an answer; 100 where it is absent */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListEventsResponse"];
                };
            };
        };
    };
    streamEvents: {
        parameters: {
            query?: {
                /** @description The `id` of an event: those that came after it */
                after?: string;
                /** @description Names of events, `group.*` or `*`, separated by commas, in any case */
                type?: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description A stream, of which this is the data of each event */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": {
                        /** @enum {string} */
                        type: "transaction.created" | "transaction.updated" | "transaction.confirmed" | "transaction.failed" | "deposit.detected" | "deposit.confirmed" | "deposit.frozen" | "deposit.released" | "deposit.suspended" | "deposit.reverted" | "address.created" | "address.frozen" | "address.unfrozen" | "wallet.created" | "wallet.updated" | "gas_tank.low" | "gas_tank.empty" | "prepaid_fee.low" | "prepaid_fee.empty" | "prepaid_fee.tier_changed" | "staking.staked" | "staking.unstaked" | "staking.releasable" | "staking.released" | "auto_forwarding.created" | "auto_forwarding.deleted" | "aml.screening_overdue" | "invoice.created" | "invoice.updated" | "invoice.processing" | "invoice.paid" | "invoice.expired" | "invoice.invalid" | "exchange_account.created" | "exchange_account.updated" | "exchange_account.failing" | "exchange_account.difference" | "exchange_account.deleted" | "order.created" | "order.updated" | "exchange_transfer.created" | "exchange_transfer.updated" | "webhook.test" | "webhook.disabled";
                        /** @description Time of the change, ISO 8601 */
                        timestamp: string;
                        data: {
                            [key: string]: unknown;
                        };
                        /** @description Equal to `webhook-id` in every delivery attempt, and the cursor of the event log */
                        id: string;
                        /** @description Id of the object that changed */
                        object: string;
                        /** @description Number of the event for its object: 1, 2, 3 …, without gaps. A lower number is an older event */
                        version: number;
                    };
                };
            };
        };
    };
    listWebhooks: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListWebhooksResponse"];
                };
            };
        };
    };
    createWebhook: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateWebhookRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    readWebhook: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    deleteWebhook: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeleteWebhookResponse"];
                };
            };
        };
    };
    changeWebhook: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ChangeWebhookRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    rotateWebhookSecret: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RotateWebhookSecretRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    testWebhook: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description Only those with this status */
                status?: "pending" | "delivered" | "failed";
                /** @description Names of events, `group.*` or `*`, separated by commas, in any case */
                type?: string;
                /** @description Page number; 1 where it is absent */
                page?: number;
                /** @description Records on a page; 50 where it is absent */
                limit?: number;
            };
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListDeliveriesResponse"];
                };
            };
        };
    };
    resendDelivery: {
        parameters: {
            path: {
                /** @description Of the object */
                delivery: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
        };
    };
    resendDeliveryOfWebhook: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
                /** @description Of the object */
                delivery: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
        };
    };
    readWebhookKeyPem: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-pem-file": string;
                };
            };
        };
    };
    readWebhookKeys: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadWebhookKeysResponse"];
                };
            };
        };
    };
    stake: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["StakeRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StakingAnswer"];
                };
            };
        };
    };
    unstake: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["UnstakeRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StakingAnswer"];
                };
            };
        };
    };
    releaseUnstaked: {
        parameters: {
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReleaseUnstakedRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StakingAnswer"];
                };
            };
        };
    };
    readStaking: {
        parameters: {
            query: {
                /** @description Who has the resource */
                address: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadStakingResponse"];
                };
            };
        };
    };
    listReserves: {
        parameters: {
            query?: {
                /** @description Page number; 1 where it is absent */
                page?: number;
                /** @description Statements on a page; 5 where it is absent */
                limit?: number;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListReservesResponse"];
                };
            };
        };
    };
    readReservesProof: {
        parameters: {
            path: {
                /** @description Of the object */
                id: string;
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReservesProof"];
                };
            };
        };
    };
    readIndex: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadIndexResponse"];
                };
            };
        };
    };
    readOpenApi: {
        parameters: {
            query?: {
                /** @description How the document describes decimals; `number` where it is absent */
                amounts?: "number" | "string";
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadOpenApiResponse"];
                };
            };
        };
    };
    readLiveness: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadLivenessResponse"];
                };
            };
        };
    };
    readReadiness: {
        parameters: {
            query?: {
                /** @description Given: 503 also where fewer than two signer nodes can sign, or no worker or no scanner is there */
                deep?: "1" | "" | "true";
            };
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadReadinessResponse"];
                };
            };
        };
    };
    readMetrics: {
        parameters: {
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
}
