# bash completion for tl. Printed by `tl help --bash`.
_tl() {
    local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        words='run repl check test bench profile generate chat serve models quantize fmt lsp mcp notebook-kernel devices help version'
    elif [[ $command == help ]]; then
        words='KVCache.append KVCache.attend KVCache.fork KVCache.get_k KVCache.get_v KVCache.len KVCache.note
             KVCache.rows KVCache.set KVCache.step KVCache.truncate abs acos adagrad adam adam_step
             adamw adapt add aggregate_neighbors all all_gather all_reduce all_to_all any append
             apply_attention_mask apply_chat_template apply_mask approx_equal arange argmax
             argmin args argsort asin assert assert_about_eq assert_eq astype atan atan2 attention
             attention_with_cache avg_pool2d backward barrier batch_norm bce_with_logits bernoulli
             binary_cross_entropy bit_and bit_not bit_or bit_xor bmm bool broadcast broadcast_to
             buffer.alloc buffer.capacity buffer.ones buffer.reset buffer.used buffer.zeros
             buffer_stats cat causal_mask ceil chat checkpoint cholesky chr chunk clamp cleanup
             clear clear_cache clip_grad_norm clock clone cndl_embedding cndl_list_safetensors
             cndl_load_gguf_tensor cndl_load_safetensor cndl_rope cndl_save_model_safetensor
             cndl_save_safetensor combine_masks complex_score compute_hits_at_k compute_mean_rank
             compute_mrr compute_rank concat contains contiguous conv1d conv2d copy cos cosh
             count count_nonzero cross_entropy csv_rows cumprod cumsum custom_grad det detach
             detokenize detokenize_incremental detokenize_single device devices diag dict dict.items
             dict.merge dict.update distmult_score div divmod dot dropout dtype e each_piece
             eigh einsum elu embed embedding embedding_table empty ends_with entity_dim entity_onehot
             enumerate env eprint eq erf error exists exit exp expand expm1 extend eye factorial
             filter find find_all flatten flip float floor floor_div format forward frequency_penalty
             from_array from_vec full fused_add_relu fused_affine fused_gelu_linear fused_mul_relu
             gather gcd ge gelu generate get get_tensor get_weight grad gradcheck grammar graph_attention
             group_norm gru_cell gt hardswish has_tensor help here hessian hook huber_loss image_folder
             index_of index_select inf input insert int int_to_tokenids inv is_empty is_training
             isfinite isinf isnan jacobian join json_schema jvp keys kl_div layer_norm le leaky_relu
             learnable len linear linear_attention linspace lion list list.append list.reverse
             list.sort list_dir lnorm load load_audio load_facts load_image load_model load_model_f16
             load_model_f32 load_onnx load_tokenizer load_weight_cache_f16 load_weight_cache_f32
             load_weight_cache_gguf_f16 load_weight_cache_gguf_f32 loader local_rank log log10
             log1p log2 log_sigmoid log_softmax logical_and logical_not logical_or logsumexp
             lower lstm_cell lt mae_loss map margin_ranking_loss masked_fill masked_select match_regex
             matmul max max_pool2d maximum mean median memory memory_report meta min min_p minimum
             mish mod model.activation model.cache_dtype model.encodes model.fast model.norm
             model.projection mse_loss mul multinomial nan ndim ne neg new_tensor_buffer nll_loss
             nonzero norm normal normalize_features numel one_hot ones ones_like ord outer pad
             padding_mask panic parameters parse_json parts permute pi plot pop positional_encoding
             pow precompute_rope_cos precompute_rope_sin predict_head_complex predict_head_distmult
             predict_head_transe predict_tail_complex predict_tail_distmult predict_tail_transe
             presence_penalty print print_top_k prod push qr rand rand_like randint randn random_normal
             range range_i rank read_csv read_file read_lines read_sql recv reduce reduce_scatter
             regex relational_aggregate relu rem remove repeat repeat_kv repetition_penalty
             replace replace_regex reset_peak_memory reshape reversed rms_norm rmsprop rng_state
             roll rope rotate_score round rsqrt same_file sample save save_audio save_facts
             save_image save_model scan scatter scatter_add script_path seed send serve set
             set_lr set_values sgd sgd_step shape shift_left shift_right sig sigmoid sign silu
             sin sinh sleep slice slice_last softmax softplus solve sort sorted split spmm sqrt
             square squeeze stack starts_with states std step stop_gradient str string_length
             string_substring sub sum svd swiglu synchronize take tan tanh tap temperature temperature_sample
             tensor tensors text_lines text_windows tile time to to_float to_int to_json to_list
             tokenize tokenizer top_k top_k_sample top_p top_p_sample topk trace transe_score
             transpose tril trim triu trunc type typical_p uniform unique unsqueeze until_interrupt
             upper value_and_grad values var vjp vmap wait where world_size write_csv write_file
             zero zero_grad zeros zeros_like zip'
    else
        case $command in
        run) words='--device --memory-check --seed --quiet --verbose --ranks --memory-limit --host-limit --disk-limit --time-limit --sandbox' ;;
        repl) words='--device --memory-check --seed --quiet --verbose --ranks --memory-limit --sandbox' ;;
        check) words='--device --json --memory --sums' ;;
        test) words='--device --memory-check --seed --quiet --verbose --ranks --memory-limit --host-limit --disk-limit --time-limit --sandbox --filter' ;;
        bench) words='--device --memory-check --seed --quiet --verbose --ranks --memory-limit --host-limit --disk-limit --time-limit --sandbox --filter' ;;
        profile) words='--device --memory-check --seed --quiet --verbose --ranks --memory-limit --host-limit --disk-limit --time-limit --sandbox' ;;
        generate) words='--device --memory-check --seed --max-tokens --temperature --top-k --top-p --stop' ;;
        chat) words='--device --memory-check --seed --max-tokens --temperature --top-k --top-p --stop --system' ;;
        serve) words='--device --memory-check --host --port --key --lora --name --batch --queue --body-limit' ;;
        models) words='--device --memory-check --json' ;;
        quantize) words='--device --memory-check' ;;
        fmt) words='--check' ;;
        mcp) words='--host-limit --disk-limit --time-limit --sandbox' ;;
        esac
        [[ $current == -* ]] || words=
    fi
    local IFS=$' \t\n'
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    [[ $command == help && $COMP_CWORD -gt 1 ]] && return
    [[ $current == -* ]] && return
    local IFS=$'\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -f -X '!*.tl' -- "$current") $(compgen -d -- "$current"))
}
complete -F _tl tl
